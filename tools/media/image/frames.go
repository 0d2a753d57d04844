// The number of images in a file, from its structure. Nothing is decoded, and nothing is trusted:
// lengths that exceed the data end the count.

package image

import (
	"encoding/binary"
	"iter"
)

// frames returns the number of images of an animation; 1 for any other file.
func frames(media string, data []byte) int {
	n := 0
	switch media {
	case "image/gif":
		n = framesOfGIF(data)
	case "image/png":
		if control := chunkOfPNG(data, "acTL"); len(control) >= 4 { // of an animated PNG
			n = int(min(binary.BigEndian.Uint32(control), 1<<20))
		}
	case "image/webp":
		for kind := range chunksOfWebP(data) {
			if kind == "ANMF" {
				n++
			}
		}
	}
	return max(n, 1)
}

// framesOfGIF counts image descriptors (GIF89a, 20).
func framesOfGIF(data []byte) (n int) {
	const header, extension, descriptor = 13, 0x21, 0x2c
	if len(data) < header {
		return 0
	}
	at := header + tableOfGIF(data[10])
	for at < len(data) {
		switch data[at] {
		case extension:
			at += 2
		case descriptor:
			if at+10 > len(data) {
				return n
			}
			n++
			at += 10 + tableOfGIF(data[at+9]) + 1 // behind it stands the size of the codes
		default:
			return n
		}
		for at < len(data) && data[at] != 0 { // blocks with their length before them, up to an empty one
			at += 1 + int(data[at])
		}
		at++
	}
	return n
}

// tableOfGIF returns the length of the table of colours that the flags announce.
func tableOfGIF(flags byte) int {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

// chunkOfPNG returns the first chunk of that kind before the pixels; nil if there is none.
func chunkOfPNG(data []byte, kind string) []byte {
	const signature, around = 8, 12 // length, kind and checksum
	for at := signature; at+around <= len(data); {
		length := int64(binary.BigEndian.Uint32(data[at:]))
		end := int64(at) + around + length
		is := string(data[at+4 : at+8])
		switch {
		case end > int64(len(data)), is == "IDAT":
			return nil
		case is == kind:
			return data[at+8 : end-4]
		}
		at = int(end)
	}
	return nil
}

// chunksOfWebP returns the chunks of a WebP file (RFC 9649, 2.3), by their kinds.
func chunksOfWebP(data []byte) iter.Seq2[string, []byte] {
	const header, before = 12, 8
	return func(yield func(string, []byte) bool) {
		for at := int64(header); at+before <= int64(len(data)); {
			length := int64(binary.LittleEndian.Uint32(data[at+4:]))
			end := at + before + length
			if end > int64(len(data)) || !yield(string(data[at:at+4]), data[at+before:end]) {
				return
			}
			at = end + length%2
		}
	}
}
