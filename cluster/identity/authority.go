// The authority of a cluster, and the certificates that it signs.

package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	authorityFile    = "ca.pem"
	authorityKeyFile = "ca-key.pem"

	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// backdated is how far the clocks of a cluster's machines may be apart.
	backdated = time.Hour
)

// files returns the names of the subject's certificate and key below a directory.
func (s Subject) files(dir string) (cert, key string) {
	name := filepath.Join(dir, string(s.Role)+"-"+s.Name)
	return name + ".pem", name + "-key.pem"
}

// An Issued is a certificate in the directory of [Init].
type Issued struct {
	File  string // its name in the directory
	Until time.Time
	Made  bool // by this call; else it was there before
}

// Init writes a certificate and a key for each subject to dir, as PEM files
// ROLE-NAME.pem and ROLE-NAME-key.pem. The authority's files are ca.pem and
// ca-key.pem; if they do not exist, Init makes them too. What exists is kept as
// it is: to renew a certificate, remove its two files first. Certificates are
// valid for a year, the authority for ten.
//
// It returns the authority's certificate and those of the subjects, in this
// order. The error names each one that could neither be made nor kept; the others
// are made all the same.
//
// Keys are ECDSA with P-256, since TLS libraries of some languages refuse
// Ed25519. Only ca.pem and a subject's own two files belong on its machine.
func Init(dir string, subjects ...Subject) (issued []Issued, err error) {
	for _, s := range subjects {
		if err := s.validate(); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	certFile, keyFile := filepath.Join(dir, authorityFile), filepath.Join(dir, authorityKeyFile)
	authority, made, err := keepOrMake(certFile, keyFile, func() error { return makeAuthority(certFile, keyFile) })
	if err != nil {
		return nil, fmt.Errorf("the cluster's authority: %w", err)
	}
	issued = []Issued{{authorityFile, authority.Leaf.NotAfter, made}}
	for _, s := range subjects {
		one, failed := s.keepOrIssue(dir, authority)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("the certificate of %s: %w", s, failed))
			continue
		}
		issued = append(issued, one)
	}
	return issued, err
}

// keepOrIssue returns the subject's certificate, which it makes if it does not exist.
func (s Subject) keepOrIssue(dir string, authority tls.Certificate) (Issued, error) {
	certFile, keyFile := s.files(dir)
	pair, made, err := keepOrMake(certFile, keyFile, func() error { return s.issue(dir, authority) })
	if err != nil {
		return Issued{}, err
	}
	why := ""
	switch found, err := subjectOf(pair.Leaf); {
	case err != nil || found.Role != s.Role || found.Name != s.Name:
		why = "is of another subject"
	case pair.Leaf.CheckSignatureFrom(authority.Leaf) != nil:
		why = "was signed by another authority than " + authorityFile
	case !s.hasHosts(pair.Leaf):
		why = fmt.Sprintf("has other hosts, %q", append(pair.Leaf.DNSNames, addresses(pair.Leaf)...))
	}
	if why != "" {
		return Issued{}, fmt.Errorf("%s %s: to replace it, remove it and %s, and run init again", certFile, why, keyFile)
	}
	return Issued{filepath.Base(certFile), pair.Leaf.NotAfter, made}, nil
}

// hasHosts reports whether a certificate has the subject's hosts and no others.
func (s Subject) hasHosts(cert *x509.Certificate) bool {
	has, want := append(slices.Clone(cert.DNSNames), addresses(cert)...), []string(nil)
	for _, host := range s.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			host = ip.String()
		}
		want = append(want, host)
	}
	slices.Sort(has)
	slices.Sort(want)
	return slices.Equal(slices.Compact(has), slices.Compact(want)) // one may have been named twice
}

func addresses(cert *x509.Certificate) (all []string) {
	for _, ip := range cert.IPAddresses {
		all = append(all, ip.String())
	}
	return all
}

// keepOrMake loads a certificate and its key. If neither file exists they are made.
func keepOrMake(certFile, keyFile string, create func() error) (pair tls.Certificate, made bool, err error) {
	_, noCert := os.Stat(certFile)
	_, noKey := os.Stat(keyFile)
	switch noCert, noKey := errors.Is(noCert, fs.ErrNotExist), errors.Is(noKey, fs.ErrNotExist); {
	case noCert && noKey:
		if err := create(); err != nil {
			return pair, false, err
		}
		made = true
	case noCert:
		return pair, false, fmt.Errorf("%s has no certificate: bring %s back, or remove the key", keyFile, certFile)
	case noKey:
		return pair, false, fmt.Errorf("%s has no key: certificates are made where %s is", certFile, keyFile)
	}
	pair, err = tls.LoadX509KeyPair(certFile, keyFile)
	return pair, made, err
}

func makeAuthority(certFile, keyFile string) error {
	template := newTemplate("toold cluster", authorityLife)
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	return sign(template, nil, certFile, keyFile)
}

// issue writes the subject's certificate and key.
func (s Subject) issue(dir string, authority tls.Certificate) error {
	template := newTemplate(s.Name, certificateLife)
	switch until := authority.Leaf.NotAfter; {
	case until.Before(time.Now()):
		return fmt.Errorf("the authority has expired on %s: make another one in another directory, and certificates for all", until.Format(time.DateOnly))
	case until.Before(template.NotAfter):
		template.NotAfter = until
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.URIs = []*url.URL{s.uri()}
	for _, host := range s.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	cert, key := s.files(dir)
	return sign(template, &authority, cert, key)
}

func newTemplate(name string, life time.Duration) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-backdated), NotAfter: now.Add(life)}
}

// sign writes a certificate and its key. A nil authority signs with the key itself.
func sign(template *x509.Certificate, authority *tls.Certificate, certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	parent, signer := template, any(key)
	if authority != nil {
		parent, signer = authority.Leaf, authority.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(keyFile, "PRIVATE KEY", secret, 0o600); err != nil {
		return err
	}
	return writePEM(certFile, "CERTIFICATE", der, 0o644)
}

// writePEM writes a file that does not exist yet.
func writePEM(name, kind string, der []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	return errors.Join(pem.Encode(file, &pem.Block{Type: kind, Bytes: der}), file.Sync(), file.Close())
}
