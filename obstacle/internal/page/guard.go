package page

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Guard refuses requests.
type Guard struct {
	// Token must come with every request: as a cookie, in ?token=, or as Authorization: Bearer. Empty: none is needed.
	Token string
	// Names are host names, besides localhost and addresses, under which the server is known. A page of another site whose
	// name its owner makes point here (DNS rebinding) sends another name.
	Names []string
	// Loopback states that the server listens on loopback only. Then addresses of other interfaces are refused, too.
	Loopback bool
}

// cookie is the name of the cookie with the token; cookies of a host are common to all its ports.
func cookie(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "80"
	}
	return "obstacle_" + port
}

// Protect returns h behind the guard.
func (g *Guard) Protect(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("X-Frame-Options", "DENY")
		head.Set("Cache-Control", "no-store")
		if !g.knows(r.Host) {
			http.Error(w, "this server is not known under that host name: use its address or localhost, "+
				"or give the name with --http NAME:PORT", http.StatusMisdirectedRequest)
			return
		}
		if r.URL.Path != "/" && !slices.Contains([]string{"", "none", "same-origin"}, r.Header.Get("Sec-Fetch-Site")) {
			http.Error(w, "pages of other sites may not read this server", http.StatusForbidden)
			return
		}
		if g.Token == "" {
			h.ServeHTTP(w, r)
			return
		}
		given := r.URL.Query().Get("token")
		if r.URL.Path == "/" && r.Method == http.MethodGet && given != "" && g.right(given) {
			// The token leaves the address bar and the history.
			http.SetCookie(w, &http.Cookie{
				Name: cookie(r), Value: url.QueryEscape(given), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
			})
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		if bearer, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); given == "" && is {
			given = bearer
		}
		if c, err := r.Cookie(cookie(r)); given == "" && err == nil {
			given, _ = url.QueryUnescape(c.Value)
		}
		if !g.right(given) {
			head.Set("WWW-Authenticate", `Bearer realm="obstacle"`)
			http.Error(w, "open the address with ?token= that the program has printed, "+
				"or send the token as Authorization: Bearer", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// right compares a token in a time that does not depend on it.
func (g *Guard) right(token string) bool {
	a, b := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(g.Token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// knows reports whether a Host header names this server.
func (g *Guard) knows(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.IsLoopback() || !g.Loopback
	}
	return name == "localhost" || slices.ContainsFunc(g.Names, func(n string) bool { return strings.EqualFold(n, name) })
}
