package pdf

// Draw draws the first page in this process.
func Draw(data []byte) ([]byte, error) {
	r, data, err := open(data)
	if err != nil {
		return nil, err
	}
	return drawScan(r, data, 1, 64)
}
