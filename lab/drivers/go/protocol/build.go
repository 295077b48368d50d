package protocol

import (
	"crypto/x509"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

// Built is the version of a module that this program was built with, without its v.
func Built(module string) string {
	if info, found := debug.ReadBuildInfo(); found {
		for _, dependency := range info.Deps {
			if dependency.Path == module && len(dependency.Version) > 1 {
				return dependency.Version[1:]
			}
		}
	}
	return "unknown"
}

// Components are the versions of the modules, and Go's own.
func Components(modules ...string) map[string]string {
	versions := map[string]string{"go": runtime.Version()[len("go"):]}
	for _, module := range modules {
		versions[module] = Built(module)
	}
	return versions
}

// Roots are the certificates that the plan says to trust, or nil for the machine's own.
func (plan Plan) Roots() (*x509.CertPool, error) {
	if plan.CAFile == nil {
		return nil, nil
	}
	text, err := os.ReadFile(*plan.CAFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", *plan.CAFile)
	}
	return roots, nil
}
