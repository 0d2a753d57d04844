package pdf_test

import (
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	_ "image/png"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/toold/toold/tools/media/pdf"
	"github.com/toold/toold/tools/tooltest/ownspace"
)

// A picture is an image in a document: its dictionary without length, and its bytes.
type picture struct{ dict, data string }

// scanned is a document of one page of 200 by 100 points, with that in its dictionary, content and images I0, I1, ...
func scanned(page, content string, pictures ...picture) []byte {
	var out bytes.Buffer
	var offsets []int
	object := func(text string) {
		offsets = append(offsets, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", len(offsets), text)
	}
	stream := func(dict, data string) {
		object(fmt.Sprintf("<< %s /Length %d >>\nstream\n%s\nendstream", dict, len(data), data))
	}
	var names strings.Builder
	for i := range pictures {
		fmt.Fprintf(&names, "/I%d %d 0 R ", i, 5+i)
	}
	out.WriteString("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object("<< /Type /Pages /Kids [3 0 R] /Count 1 /MediaBox [0 0 200 100] >>")
	object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /Contents 4 0 R %s /Resources << /XObject << %s >> >> >>", page, names.String()))
	stream("", content)
	for _, p := range pictures {
		stream("/Type /XObject "+p.dict, p.data)
	}
	xref := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, xref)
	return out.Bytes()
}

func deflated(data string) string {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	_, _ = w.Write([]byte(data))
	_ = w.Close()
	return out.String()
}

// halves is a JPEG of 64 by 32 pixels whose left half has the one colour, and its right half the other.
func halves(left, right color.Color) string {
	m := image.NewRGBA(image.Rect(0, 0, 64, 32))
	for y := range 32 {
		for x := range 64 {
			c := left
			if x >= 32 {
				c = right
			}
			m.Set(x, y, c)
		}
	}
	var out bytes.Buffer
	_ = jpeg.Encode(&out, m, &jpeg.Options{Quality: 95})
	return out.String()
}

const (
	whole  = "q 200 0 0 100 0 0 cm /I0 Do Q"
	image8 = "/Subtype /Image /Width 4 /Height 2 /BitsPerComponent 8 "
)

// TestScan: pages that consist of images come out as they are meant, with each reader.
func TestScan(t *testing.T) {
	red, blue := color.RGBA{220, 0, 0, 255}, color.RGBA{0, 0, 220, 255}
	gray := "\x00\x00\xff\xff"
	for _, c := range []struct {
		name, page, content string
		pictures            []picture
		want                string // of nine places, row by row: black, white, red, blue
	}{
		{"JPEG", "", whole, []picture{{"/Subtype /Image /Width 64 /Height 32 /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /DCTDecode", halves(red, blue)}}, "r.b r.b r.b"},
		{"JPEG behind another filter", "", whole, []picture{{"/Subtype /Image /Width 64 /Height 32 /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter [/ASCIIHexDecode /DCTDecode]", hex.EncodeToString([]byte(halves(red, blue))) + ">"}}, "r.b r.b r.b"},
		{"gray", "", whole, []picture{{image8 + "/ColorSpace /DeviceGray /Filter /FlateDecode", deflated(gray + gray)}}, "k.w k.w k.w"},
		{"inverted", "", whole, []picture{{image8 + "/ColorSpace /DeviceGray /Decode [1 0]", gray + gray}}, "w.k w.k w.k"},
		{"an inverted JPEG", "", whole, []picture{{"/Subtype /Image /Width 64 /Height 32 /ColorSpace /DeviceRGB /BitsPerComponent 8 /Decode [1 0 1 0 1 0] /Filter /DCTDecode", halves(color.Black, color.White)}}, "w.k w.k w.k"},
		{"one bit", "", whole, []picture{{"/Subtype /Image /Width 4 /Height 2 /BitsPerComponent 1 /ColorSpace /DeviceGray", "\x30\x30"}}, "k.w k.w k.w"},
		{"indexed", "", whole, []picture{{"/Subtype /Image /Width 4 /Height 2 /BitsPerComponent 4 /ColorSpace [/Indexed /DeviceRGB 1 <dc00000000dc>]", "\x00\x11\x00\x11"}}, "r.b r.b r.b"},
		{"RGB with a prediction", "", whole, []picture{{
			"/Subtype /Image /Width 2 /Height 2 /BitsPerComponent 8 /ColorSpace /DeviceRGB /Filter /FlateDecode /DecodeParms << /Predictor 15 /Colors 3 /Columns 2 >>",
			deflated("\x01\xdc\x00\x00\x24\x00\xdc" + "\x02\x00\x00\x00\x00\x00\x00"),
		}}, "r.b r.b r.b"},
		{"fax", "", whole, []picture{{
			"/Subtype /Image /Width 8 /Height 2 /BitsPerComponent 1 /ColorSpace /DeviceGray /Filter /CCITTFaxDecode /DecodeParms << /K -1 /Columns 8 /Rows 2 >>",
			"\x26\xaf\xc0\x04\x00\x40",
		}}, "k.w k.w k.w"},
		{"a stencil", "", whole, []picture{{"/Subtype /Image /Width 4 /Height 2 /ImageMask true", "\x30\x30"}}, "k.w k.w k.w"},
		{"turned", "/Rotate 90", whole, []picture{{image8 + "/ColorSpace /DeviceGray", gray + gray}}, "kkk ... www"},
		{"turned over", "/Rotate 180", whole, []picture{{image8 + "/ColorSpace /DeviceGray", gray + gray}}, "w.k w.k w.k"},
		{"in strips", "", "q 200 0 0 50 0 50 cm /I0 Do Q q 200 0 0 50 0 0 cm /I1 Do Q", []picture{{image8 + "/ColorSpace /DeviceGray", gray + gray}, {image8 + "/ColorSpace /DeviceGray", "\xff\xff\xff\xff\xff\xff\xff\xff"}}, "k.w ... www"},
		{"a part of the page", "/CropBox [100 0 200 100]", whole, []picture{{image8 + "/ColorSpace /DeviceGray", gray + gray}}, "www www www"},
		{"on white, with a form", "", "1 g 0 0 200 100 re f /I1 Do", []picture{{image8 + "/ColorSpace /DeviceGray", gray + gray}, {"/Subtype /Form /BBox [0 0 1 1] /Matrix [200 0 0 100 0 0] /Resources << /XObject << /A 5 0 R >> >>", "/A Do"}}, "k.w k.w k.w"},
		{"recognised text over it", "", whole + " BT 3 Tr (text) Tj ET", []picture{{image8 + "/ColorSpace /DeviceGray", gray + gray}}, "k.w k.w k.w"},
	} {
		drawers(t, c.name, func(t *testing.T) {
			d := pdf.Document{Data: scanned(c.page, c.content, c.pictures...), Call: "call", Box: box(t)}
			data, err := d.Image(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			page, _, err := image.Decode(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if got := places(page); !fits(got, c.want) {
				t.Errorf("%s: %q, want %q", page.Bounds(), got, c.want)
			}
		})
	}
}

// drawers runs a test with each program that draws pages.
func drawers(t *testing.T, name string, check func(t *testing.T)) {
	t.Helper()
	t.Run(name+"/own", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		check(t)
	})
	t.Run(name+"/poppler", func(t *testing.T) {
		if _, err := exec.LookPath("pdftoppm"); err != nil {
			ownspace.Lacks(t, "install poppler-utils")
		}
		check(t)
	})
}

// places are the colours at nine places of a page.
func places(page image.Image) string {
	var rows []string
	size := page.Bounds().Size()
	for _, y := range []int{1, 4, 7} {
		row := ""
		for _, x := range []int{1, 4, 7} {
			r, g, b, _ := page.At(size.X*x/8, size.Y*y/8).RGBA()
			switch dark := func(v uint32) bool { return v < 0x6000 }; {
			case dark(r) && dark(g) && dark(b):
				row += "k"
			case !dark(r) && !dark(g) && !dark(b):
				row += "w"
			case !dark(r):
				row += "r"
			default:
				row += "b"
			}
		}
		rows = append(rows, row)
	}
	return strings.Join(rows, " ")
}

// fits reports whether the colours are the wanted ones; a dot stands for any.
func fits(got, want string) bool {
	for i := range want {
		if want[i] != '.' && want[i] != got[i] {
			return false
		}
	}
	return len(got) == len(want)
}

// huge is a JPEG that claims 65,000 pixels a side.
func huge(jpeg string) string {
	at := strings.Index(jpeg, "\xff\xc0") + 5 // behind the length and the precision
	return jpeg[:at] + "\xfd\xe8\xfd\xe8" + jpeg[at+4:]
}

// TestUndrawable: without pdftoppm a page that shows more than images is not drawn in part.
func TestUndrawable(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	gray := picture{image8 + "/ColorSpace /DeviceGray", strings.Repeat("\x00", 8)}
	for name, data := range map[string][]byte{
		"text":           document("", shows("text")),
		"nothing":        scanned("", ""),
		"a line over it": scanned("", whole+" 0 0 m 9 9 l S", gray),
		"a patch on it":  scanned("", whole+" 1 g 0 0 9 9 re f", gray),
		"ink below it":   scanned("", "/I1 Do "+whole, gray, picture{"/Subtype /Form /BBox [0 0 200 100] /Resources << /ColorSpace << /C [/Separation /Black /DeviceGray 1] >> >>", "/C cs 1 scn 0 0 9 9 re f"}),
		"a palette's":    scanned("", "/I1 Do "+whole, gray, picture{"/Subtype /Form /BBox [0 0 200 100] /Resources << /ColorSpace << /C [/Indexed /DeviceGray 1 <ff00>] >> >>", "/C cs 1 sc 0 0 9 9 re f"}),
		"an inline one":  scanned("", "BI /W 1 /H 1 /BPC 8 /CS /G ID x EI"),
		"of JPEG 2000":   scanned("", whole, picture{image8 + "/Filter /JPXDecode", "x"}),
		"too short":      scanned("", whole, picture{image8 + "/ColorSpace /DeviceGray", "\x00"}),
		"with a mask":    scanned("", whole, picture{image8 + "/ColorSpace /DeviceGray /SMask 5 0 R", strings.Repeat("\x00", 8)}),
		"of itself":      scanned("", "/I0 Do", picture{"/Subtype /Form /BBox [0 0 1 1] /Resources << /XObject << /I0 5 0 R >> >>", "/I0 Do"}),
		"too large":      scanned("", whole, picture{"/Subtype /Image /Width 100000 /Height 100000 /BitsPerComponent 1 /ColorSpace /DeviceGray", "x"}),
		"a huge JPEG":    scanned("", whole, picture{"/Subtype /Image /Width 64 /Height 32 /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /DCTDecode", huge(halves(color.White, color.Black))}),
		"its own parent": bytes.Replace(scanned("", whole, gray), []byte("/Count 1 /MediaBox [0 0 200 100]"), []byte("/Count 1 /Parent 2 0 R          "), 1),
	} {
		d := pdf.Document{Data: data, Call: "call", Box: box(t)}
		if out, err := d.Image(t.Context(), 1); !errors.Is(err, pdf.ErrUndrawable) {
			t.Errorf("%s: %d bytes, %v", name, len(out), err)
		}
	}
}

// FuzzPixels: whatever an image says of itself and holds, its page is drawn or refused. Names and numbers are from the fuzzer,
// and what holds them is not: the library has no bound on that, which is one reason why a document is read by a process of its own.
func FuzzPixels(f *testing.F) {
	add := func(width, height, bits int, space, filter, decode, data string) {
		f.Add(width, height, bits, space, filter, decode, data)
	}
	add(4, 2, 8, "DeviceGray", "", "", "\x00\xff\x00\xff\x00\xff\x00\xff")
	add(4, 2, 4, "Indexed", "", "", "12345678")
	add(2, 2, 16, "DeviceCMYK", "ASCIIHexDecode", "", "00ff>")
	add(8, 2, 1, "DeviceGray", "CCITTFaxDecode", "/K -1 /Columns 8", "\x26\xaf\xc0\x04\x00\x40")
	add(2, 2, 8, "DeviceRGB", "FlateDecode", "/Predictor 12 /Columns 2 /Colors 3", deflated("\x02abcabc\x04abcabc"))
	add(2, 2, 8, "Separation", "LZWDecode", "/Predictor 1", "\x80\x0b\x60\x50\x22\x0c\x0c\x85\x01")
	add(64, 32, 8, "DeviceRGB", "DCTDecode", "", halves(color.White, color.Black))
	plain := regexp.MustCompile(`^[A-Za-z0-9/. -]*$`)
	f.Fuzz(func(t *testing.T, width, height, bits int, space, filter, decode, data string) {
		if !plain.MatchString(space + filter + decode) {
			t.Skip()
		}
		if space == "Indexed" {
			space = "[/Indexed /DeviceRGB 1 <dc00000000dc>]"
		} else {
			space = "/" + space
		}
		dict := fmt.Sprintf("/Subtype /Image /Width %d /Height %d /BitsPerComponent %d /ColorSpace %s /Filter [/%s] /DecodeParms << %s >>", width, height, bits, space, filter, decode)
		if filter == "" {
			dict = strings.Replace(dict, " /Filter [/]", "", 1)
		}
		out, err := pdf.Draw(scanned("", whole, picture{dict, data}))
		if err == nil {
			_, _, err = image.Decode(bytes.NewReader(out))
			if err != nil {
				t.Errorf("a page that cannot be decoded: %v", err)
			}
		}
	})
}
