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

// Init writes a certificate and a key for each subject to dir, as PEM files
// ROLE-NAME.pem and ROLE-NAME-key.pem. The authority's files are ca.pem and
// ca-key.pem; if they do not exist, Init makes them too. A certificate that
// exists is an error that wraps [fs.ErrExist], and is left as it is: remove it
// to renew it. Certificates are valid for a year, the authority for ten.
//
// Keys are ECDSA with P-256, since TLS libraries of some languages refuse
// Ed25519. Only ca.pem and a subject's own two files belong on its machine.
func Init(dir string, subjects ...Subject) error {
	for _, s := range subjects {
		if err := s.validate(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	authority, err := loadAuthority(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeAuthority(dir); err == nil {
			authority, err = loadAuthority(dir)
		}
	}
	if err != nil {
		return fmt.Errorf("the cluster's authority: %w", err)
	}
	for _, s := range subjects {
		if err := s.issue(dir, authority); err != nil {
			return fmt.Errorf("the certificate of %s: %w", s, err)
		}
	}
	return nil
}

func loadAuthority(dir string) (tls.Certificate, error) {
	return tls.LoadX509KeyPair(filepath.Join(dir, authorityFile), filepath.Join(dir, authorityKeyFile))
}

func makeAuthority(dir string) error {
	template := newTemplate("toold cluster", authorityLife)
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	return sign(template, nil, filepath.Join(dir, authorityFile), filepath.Join(dir, authorityKeyFile))
}

// issue writes the subject's certificate and key.
func (s Subject) issue(dir string, authority tls.Certificate) error {
	template := newTemplate(s.Name, certificateLife)
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
