// Package identity authenticates the machines and users of a cluster: it makes and loads the
// certificates of gateways, nodes and administrators, authenticates users at a
// gateway, and lets a gateway tell a node for which principal it calls.
//
// There is one authority for the machines of a cluster. A certificate carries
// its role and name as a URI, and both ends of a connection check them, so a
// node's address may change. Users are authenticated by tokens, or by
// certificates of another authority.
//
// It does not know what a principal may do.
package identity

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Role is what a machine or a person is in a cluster.
type Role string

// The roles of certificates.
const (
	Gateway Role = "gateway" // passes users' calls on to nodes
	Node    Role = "node"    // runs workspaces
	Admin   Role = "admin"   // a person, who may do what a gateway does
	NATS    Role = "nats"    // a server of the log
)

var roles = []Role{Gateway, Node, Admin, NATS}

const scheme = "toold-cluster"

var validName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// Subject is who a certificate is made for.
type Subject struct {
	Role Role
	Name string // 1 to 64 letters, digits and . _ -
	// Hosts are DNS names and IP addresses for clients that check them: users
	// do of a gateway, and NATS clients of a NATS server. Nodes need none.
	Hosts []string
}

// String returns the URI that a certificate of the subject has.
func (s Subject) String() string { return scheme + "://" + string(s.Role) + "/" + s.Name }

func (s Subject) validate() error {
	if !slices.Contains(roles, s.Role) || !validName.MatchString(s.Name) {
		return fmt.Errorf("%q is not the role and name of a certificate: roles are %v, and a name is 1 to 64 letters, digits and . _ -", s, roles)
	}
	return nil
}

// A CertificateError is returned for a certificate that is not one of the
// cluster's, or has a role or name that is not expected.
type CertificateError struct{ Why string }

func (e *CertificateError) Error() string { return "the certificate " + e.Why }

// subjectOf returns the subject that a certificate names.
func subjectOf(cert *x509.Certificate) (Subject, error) {
	if len(cert.URIs) != 1 {
		return Subject{}, &CertificateError{fmt.Sprintf("has %d URIs; one of the cluster has one", len(cert.URIs))}
	}
	uri := cert.URIs[0]
	found := Subject{Role: Role(uri.Host), Name: strings.TrimPrefix(uri.Path, "/")}
	if uri.String() != found.String() || found.validate() != nil {
		return Subject{}, &CertificateError{"names no role and name of a cluster"}
	}
	return found, nil
}

// An Identity is a certificate of the cluster with its key. It is immutable and
// safe for concurrent use.
type Identity struct {
	Subject Subject

	pair  tls.Certificate
	roots *x509.CertPool // the cluster's authority
	until time.Time      // when the first certificate of that expires
}

// Expiry returns when the certificate and that of the cluster's authority expire.
func (i *Identity) Expiry() (own, authority time.Time) { return i.pair.Leaf.NotAfter, i.until }

// Load reads the certificate of a subject from a directory that [Init] has
// written, or from a copy with ca.pem and the subject's two files.
func Load(dir string, role Role, name string) (*Identity, error) {
	subject := Subject{Role: role, Name: name}
	if err := subject.validate(); err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(filepath.Join(dir, authorityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is no directory with the cluster's certificates, which --certs names: %w", dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("the cluster's authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s holds no certificate", filepath.Join(dir, authorityFile))
	}
	until := firstExpiry(authority)
	cert, key := subject.files(dir)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("the certificate of %s: %w", subject, err)
	}
	found, err := subjectOf(pair.Leaf)
	if err != nil || found.Role != role || found.Name != name {
		return nil, fmt.Errorf("%s is not a certificate of %s", cert, subject)
	}
	return &Identity{Subject: found, pair: pair, roots: roots, until: until}, nil
}

// firstExpiry returns when the first of the certificates in a PEM file expires. What is none is passed over, as by a pool.
func firstExpiry(file []byte) (until time.Time) {
	for block, rest := pem.Decode(file); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err == nil && (until.IsZero() || cert.NotAfter.Before(until)) {
			until = cert.NotAfter
		}
	}
	return until
}

// ServerTLS returns the configuration of a server that accepts only the
// cluster's certificates with one of the roles.
func (i *Identity) ServerTLS(allowed ...Role) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{i.pair},
		MinVersion:   tls.VersionTLS13,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    i.roots,
		VerifyConnection: func(state tls.ConnectionState) error {
			found, err := subjectOf(state.PeerCertificates[0])
			if err == nil && !slices.Contains(allowed, found.Role) {
				err = &CertificateError{fmt.Sprintf("is of a %s, which may not connect here", found.Role)}
			}
			return err
		},
	}
}

// ClientTLS returns the configuration of a client that connects to one subject
// only, at any address.
func (i *Identity) ClientTLS(role Role, name string) *tls.Config {
	return &tls.Config{
		Certificates:       []tls.Certificate{i.pair},
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // VerifyConnection checks the chain, and the name instead of the host
		VerifyConnection: func(state tls.ConnectionState) error {
			if err := i.verifyChain(state.PeerCertificates); err != nil {
				return err
			}
			found, err := subjectOf(state.PeerCertificates[0])
			if err == nil && (found.Role != role || found.Name != name) {
				err = &CertificateError{fmt.Sprintf("is of %s, and %s is expected", found, Subject{Role: role, Name: name})}
			}
			return err
		},
	}
}

// NATSClientTLS returns the configuration of a connection to NATS, whose
// servers have certificates of the cluster with the hosts that are dialed.
func (i *Identity) NATSClientTLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{i.pair}, MinVersion: tls.VersionTLS13, RootCAs: i.roots}
}

func (i *Identity) verifyChain(shown []*x509.Certificate) error {
	if len(shown) == 0 {
		return &CertificateError{"is missing"}
	}
	between := x509.NewCertPool()
	for _, cert := range shown[1:] {
		between.AddCert(cert)
	}
	_, err := shown[0].Verify(x509.VerifyOptions{Roots: i.roots, Intermediates: between})
	return err
}

// UserTLS returns the configuration of a gateway's listener for users. The
// certificate that it shows is the PEM files cert and key, the gateway's own if
// they are empty. userCA is a PEM file with the authorities of users'
// certificates; empty: users have tokens only.
func (i *Identity) UserTLS(cert, key, userCA string) (*tls.Config, error) {
	config := &tls.Config{Certificates: []tls.Certificate{i.pair}, MinVersion: tls.VersionTLS13}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("the certificate for users: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if userCA == "" {
		return config, nil
	}
	text, err := os.ReadFile(userCA)
	if err != nil {
		return nil, fmt.Errorf("the authorities of users: %w", err)
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
	if !config.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate of users' authorities", userCA)
	}
	return config, nil
}

// signer returns the key of the certificate.
func (i *Identity) signer() (crypto.Signer, error) {
	if key, ok := i.pair.PrivateKey.(crypto.Signer); ok {
		return key, nil
	}
	return nil, errors.New("the certificate's key does not sign")
}

func (s Subject) uri() *url.URL {
	return &url.URL{Scheme: scheme, Host: string(s.Role), Path: "/" + s.Name}
}
