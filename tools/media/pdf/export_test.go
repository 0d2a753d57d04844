package pdf

// Draw draws the first page in this process.
func Draw(data []byte) ([]byte, error) {
	r, err := open(data)
	if err != nil {
		return nil, err
	}
	return drawScan(r, normal(data), 1, 64)
}
