// Package nearest measures the similarity of names, for messages that suggest what was probably
// meant. It does not know what the names stand for.
package nearest

import "strings"

// Distance counts the bytes to insert, delete or replace to make b of a (Levenshtein), whatever their case. It takes time
// in proportion to the product of the lengths; callers bound them.
func Distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
