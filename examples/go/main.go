// A relying party of CorpID in one file, on go-oidc and go-jose: `go run .`. docs/relying-parties.md is the guide.
package main

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/oauth2"
)

var (
	issuer              = cmp.Or(os.Getenv("ISSUER"), "http://localhost:8400") // where `corpid demo` is
	clientID            = cmp.Or(os.Getenv("CLIENT_ID"), "go-rp")
	home                = "127.0.0.1:" + cmp.Or(os.Getenv("PORT"), "8413")
	callback            = "http://" + home + "/callback"                         // registered, and compared character by character
	legacy              = cmp.Or(os.Getenv("GENERATION"), "current") == "legacy" // until the client's last day
	keys                struct{ Signing, Encryption jose.JSONWebKey }            // one says who we are, one decrypts ID tokens
	metadata            map[string]any
	verifier            *oidc.IDTokenVerifier         // it fetches CorpID's keys, and again if it lacks one
	resource, tokenType = "userinfo_endpoint", "DPoP" // legacy has others
	attempts            sync.Map                      // cookie → attempt; drop old ones, and share them among servers
)

type attempt struct {
	state, nonce, verifier string
	key                    jose.JSONWebKey // for DPoP
}

// signed makes our own tokens: assertions of who we are, and DPoP proofs.
func signed(key jose.JSONWebKey, kind jose.ContentType, claims map[string]any) string {
	options := (&jose.SignerOptions{EmbedJWK: kind == "dpop+jwt"}).WithType(kind)
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key}, options))
	claims["jti"], claims["iat"] = rand.Text(), time.Now().Unix()
	return must(jwt.Signed(signer).Claims(claims).Serialize())
}

// ask CorpID: with a form to say who we are, or with an access token; once more if it wants a nonce in the proof.
func ask(endpoint string, key jose.JSONWebKey, form url.Values, token string) []byte {
	proof := map[string]any{"htm": "POST", "htu": metadata[endpoint]}
	for {
		headers := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
		if token == "" { // the audience is CorpID's issuer, whatever the endpoint
			claims := map[string]any{"iss": clientID, "sub": clientID, "aud": issuer, "exp": time.Now().Unix() + 60}
			form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
			form.Set("client_assertion", signed(keys.Signing, "JWT", claims))
		} else {
			proof["ath"] = oauth2.S256ChallengeFromVerifier(token) // is hashed like a verifier
			headers.Set("Authorization", tokenType+" "+token)
		}
		if !legacy {
			headers.Set("DPoP", signed(key, "dpop+jwt", proof))
		}
		request := must(http.NewRequest("POST", metadata[endpoint].(string), strings.NewReader(form.Encode())))
		request.Header = headers
		response := must(http.DefaultClient.Do(request))
		body := must(io.ReadAll(response.Body))
		nonce := response.Header.Get("DPoP-Nonce")
		if response.StatusCode < 300 {
			return body
		}
		check(nonce != "" && proof["nonce"] == nil, response.Status+string(body)+response.Header.Get("WWW-Authenticate"))
		proof["nonce"] = nonce
	}
}

// login makes the request, keeps what the callback needs, and sends the browser to CorpID.
func login(answer http.ResponseWriter, request *http.Request) {
	defer refuse(answer)
	key := jose.JSONWebKey{Key: must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), Algorithm: "ES256"}
	cookie, one := rand.Text(), attempt{rand.Text(), rand.Text(), oauth2.GenerateVerifier(), key}
	form := url.Values{"response_type": {"code"}, "client_id": {clientID}, "redirect_uri": {callback},
		"scope": {"openid authinfo tpauthinfo"}, "state": {one.state}, "nonce": {one.nonce},
		"code_challenge": {oauth2.S256ChallengeFromVerifier(one.verifier)}, "code_challenge_method": {"S256"}}
	if !legacy {
		var pushed struct{ Request_uri string }
		form.Set("scope", "openid authinfo tpauthinfo user.name")
		form.Set("authentication_context_type", "APP_AUTHENTICATION_DEFAULT")
		must(0, json.Unmarshal(ask("pushed_authorization_request_endpoint", key, form, ""), &pushed))
		form = url.Values{"client_id": {clientID}, "request_uri": {pushed.Request_uri}}
	}
	attempts.Store(cookie, one)
	http.SetCookie(answer, &http.Cookie{Name: "go_rp", Value: cookie, HttpOnly: true, SameSite: http.SameSiteLaxMode}) // and Secure
	http.Redirect(answer, request, metadata["authorization_endpoint"].(string)+"?"+form.Encode(), http.StatusSeeOther)
}

// finish redeems the code and asks what the person may do. All checks are in here; a failed one panics.
func finish(answer http.ResponseWriter, request *http.Request) {
	defer refuse(answer)
	found, known := attempts.LoadAndDelete(must(request.Cookie("go_rp")).Value) // once
	check(known, "this browser finished that sign-in already")
	one, given := found.(attempt), request.URL.Query()
	check(given.Get("state") == one.state, "the callback is of another sign-in")
	named := metadata["authorization_response_iss_parameter_supported"] == true
	check(!named || given.Get("iss") == issuer, "the callback is of another provider")
	check(given.Has("code"), given.Get("error")+": "+given.Get("error_description"))
	form := url.Values{"grant_type": {"authorization_code"}, "client_id": {clientID}, "redirect_uri": {callback},
		"code": {given.Get("code")}, "code_verifier": {one.verifier}}
	var tokens struct{ Access_token, Id_token, Token_type string }
	must(0, json.Unmarshal(ask("token_endpoint", one.key, form, ""), &tokens))
	check(tokens.Token_type == tokenType, "the access token is of another type")
	wraps := []jose.KeyAlgorithm{jose.KeyAlgorithm(keys.Encryption.Algorithm)}
	contents := []jose.ContentEncryption{jose.A256CBC_HS512, jose.A256GCM}
	sealed := must(jose.ParseEncryptedCompact(tokens.Id_token, wraps, contents))
	idToken, claims := verified(must(sealed.Decrypt(keys.Encryption)))
	check(idToken.Nonce == one.nonce, "the nonce is of another sign-in")
	must(0, idToken.VerifyAccessToken(tokens.Access_token))
	about, userinfo := verified(ask(resource, one.key, nil, tokens.Access_token)) // a signed JWT, too
	check(about.Subject == idToken.Subject, "userinfo is about somebody else")
	fmt.Fprintf(answer, "Signed in\n%s\n%s\n", claims, userinfo) // here your own session for this person begins
}

// verified are the claims of a token that CorpID signed for us alone, just now.
func verified(token []byte) (found *oidc.IDToken, claims json.RawMessage) {
	found = must(verifier.Verify(context.Background(), string(token)))
	check(len(found.Audience) == 1 && found.Subject != "", "the token is for others, too, or about nobody")
	check(found.IssuedAt.Before(time.Now().Add(time.Minute)), "the token is of the future")
	must(0, found.Claims(&claims))
	return found, claims
}

func check(good bool, otherwise string) {
	if !good {
		panic(otherwise)
	}
}

func must[T any](value T, err error) T {
	check(err == nil, fmt.Sprint(err))
	return value
}

// refuse shows why somebody is not signed in, for check and must.
func refuse(answer http.ResponseWriter) {
	if reason := recover(); reason != nil {
		http.Error(answer, fmt.Sprint("Refused: ", reason), http.StatusForbidden)
	}
}

func main() {
	if legacy {
		resource, tokenType = "authorization-info_endpoint", "Bearer"
	}
	must(0, json.Unmarshal(must(os.ReadFile(cmp.Or(os.Getenv("KEYS"), "keys.json"))), &keys))
	http.DefaultClient.Timeout = 10 * time.Second
	provider := must(oidc.NewProvider(context.Background(), issuer))
	must(0, provider.Claims(&metadata))
	verifier = provider.Verifier(&oidc.Config{ClientID: clientID, SupportedSigningAlgs: []string{"ES256"}})
	http.HandleFunc("/login", login)
	http.HandleFunc("/callback", finish)
	fmt.Println("Open http://" + home + "/login")
	must(0, http.ListenAndServe(home, nil))
}
