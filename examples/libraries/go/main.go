// A relying party on golang.org/x/oauth2 and go-jose. The argument is its registration (docs/libraries.md); it prints the
// address for the browser, reads the callback, and prints what it learned.
package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/oauth2"
)

var rp struct {
	Issuer, Resource string
	ClientID         string `json:"client_id"`
	RedirectURI      string `json:"redirect_uri"`
	Signing          jose.JSONWebKey
	Encryption       jose.JSONWebKey
	Parameters       map[string]string
	Pushed, Bound    bool
	IDTokenEncrypted bool `json:"id_token_encrypted"`
	UserinfoSigned   bool `json:"userinfo_signed"`
}

// piece
var metadata map[string]any

// signed makes our own tokens: assertions of who we are, and DPoP proofs.
func signed(key jose.JSONWebKey, kind jose.ContentType, claims map[string]any) string {
	options := (&jose.SignerOptions{EmbedJWK: kind == "dpop+jwt"}).WithType(kind)
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key}, options))
	claims["jti"], claims["iat"] = rand.Text(), time.Now().Unix()
	return must(jwt.Signed(signer).Claims(claims).Serialize())
}

// assertion is private_key_jwt, which x/oauth2 does not have: two parameters of the request.
func assertion() url.Values {
	claims := map[string]any{"iss": rp.ClientID, "sub": rp.ClientID, "aud": rp.Issuer, "exp": time.Now().Unix() + 60}
	return url.Values{"client_assertion": {signed(rp.Signing, "JWT", claims)},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"}}
}

// proving adds a DPoP proof to each request: one key for each sign-in.
type proving struct{ key jose.JSONWebKey }

func (p proving) RoundTrip(request *http.Request) (*http.Response, error) {
	claims := map[string]any{"htm": request.Method, "htu": request.URL.String()}
	if token, found := strings.CutPrefix(request.Header.Get("Authorization"), "DPoP "); found {
		claims["ath"] = oauth2.S256ChallengeFromVerifier(token) // is hashed like a verifier
	}
	request = request.Clone(request.Context())
	request.Header.Set("DPoP", signed(p.key, "dpop+jwt", claims))
	return http.DefaultTransport.RoundTrip(request)
}

type attempt struct {
	state, nonce, verifier string
	http                   *http.Client
}

func get(client *http.Client, address string, token *oauth2.Token) []byte {
	request := must(http.NewRequest("GET", address, nil))
	if token != nil {
		token.SetAuthHeader(request)
	}
	return read(client.Do(request))
}

func read(response *http.Response, err error) []byte {
	check(err)
	body := must(io.ReadAll(response.Body))
	if response.StatusCode >= 300 {
		check(errors.New(response.Status + string(body) + response.Header.Get("WWW-Authenticate")))
	}
	return body
}

func connect() *oauth2.Config {
	check(json.Unmarshal(get(http.DefaultClient, rp.Issuer+"/.well-known/openid-configuration", nil), &metadata))
	same("issuer", metadata["issuer"], rp.Issuer)
	return &oauth2.Config{ClientID: rp.ClientID, RedirectURL: rp.RedirectURI, Endpoint: oauth2.Endpoint{
		AuthURL:   metadata["authorization_endpoint"].(string),
		TokenURL:  metadata["token_endpoint"].(string),
		AuthStyle: oauth2.AuthStyleInParams, // there is no secret
	}}
}

func begin(config *oauth2.Config) (attempt, string) {
	one := attempt{rand.Text(), rand.Text(), oauth2.GenerateVerifier(), http.DefaultClient}
	if rp.Bound {
		key := jose.JSONWebKey{Key: must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), Algorithm: "ES256"}
		one.http = &http.Client{Transport: proving{key}, Timeout: 10 * time.Second}
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(one.verifier), oauth2.SetAuthURLParam("nonce", one.nonce)}
	for name, value := range rp.Parameters {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	address := config.AuthCodeURL(one.state, options...)
	if !rp.Pushed {
		return one, address
	}
	form := assertion()
	for name, values := range must(url.Parse(address)).Query() {
		form[name] = values
	}
	var pushed struct {
		RequestURI string `json:"request_uri"`
	}
	endpoint := metadata["pushed_authorization_request_endpoint"].(string)
	check(json.Unmarshal(read(one.http.PostForm(endpoint, form)), &pushed))
	query := url.Values{"client_id": {rp.ClientID}, "request_uri": {pushed.RequestURI}}
	return one, config.Endpoint.AuthURL + "?" + query.Encode()
}

func finish(config *oauth2.Config, callback string, one attempt) (claims, userinfo map[string]any) {
	given := must(url.Parse(callback)).Query()
	same("state", given.Get("state"), one.state)
	if metadata["authorization_response_iss_parameter_supported"] == true {
		same("iss", given.Get("iss"), rp.Issuer)
	}
	options := []oauth2.AuthCodeOption{oauth2.VerifierOption(one.verifier)}
	for name, values := range assertion() {
		options = append(options, oauth2.SetAuthURLParam(name, values[0]))
	}
	ours := context.WithValue(context.Background(), oauth2.HTTPClient, one.http)
	token := must(config.Exchange(ours, given.Get("code"), options...))
	idToken, _ := token.Extra("id_token").(string)
	if rp.IDTokenEncrypted {
		idToken = decrypted(idToken)
	}
	claims = verified(idToken)
	same("nonce", claims["nonce"], one.nonce)
	hash := sha256.Sum256([]byte(token.AccessToken))
	same("at_hash", claims["at_hash"], base64.RawURLEncoding.EncodeToString(hash[:16]))
	body := string(get(one.http, metadata[rp.Resource].(string), token))
	if strings.Count(body, ".") == 4 && body[0] != '{' { // if the client is registered for encrypted userinfo
		body = decrypted(body)
	}
	if rp.UserinfoSigned {
		userinfo = verified(body)
	} else {
		check(json.Unmarshal([]byte(body), &userinfo))
	}
	same("sub", userinfo["sub"], claims["sub"])
	return claims, userinfo
}

func decrypted(token string) string {
	wraps := []jose.KeyAlgorithm{jose.KeyAlgorithm(rp.Encryption.Algorithm)}
	sealed := must(jose.ParseEncryptedCompact(token, wraps, []jose.ContentEncryption{jose.A256CBC_HS512, jose.A256GCM}))
	return string(must(sealed.Decrypt(rp.Encryption)))
}

// verified are the claims of a token for us alone. Cache the keys for an hour, and fetch them again for an unknown kid.
func verified(token string) (claims map[string]any) {
	var published jose.JSONWebKeySet
	var known jwt.Claims
	check(json.Unmarshal(get(http.DefaultClient, metadata["jwks_uri"].(string), nil), &published))
	check(must(jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})).Claims(published, &known, &claims))
	check(known.ValidateWithLeeway(jwt.Expected{Issuer: rp.Issuer, AnyAudience: jwt.Audience{rp.ClientID}}, 30*time.Second))
	same("aud", len(known.Audience), 1)
	same("exp and iat", known.Expiry != nil && known.IssuedAt != nil, true)
	return claims
}

func same(name string, found, expected any) {
	if found != expected {
		check(fmt.Errorf("%s is %v and not %v", name, found, expected))
	}
}

func check(err error) {
	if err != nil {
		log.Panic(err) // your own way to refuse a sign-in
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

// end

func main() {
	check(json.Unmarshal(must(os.ReadFile(os.Args[1])), &rp))
	config := connect()
	one, address := begin(config)
	fmt.Println(address)
	callback := must(bufio.NewReader(os.Stdin).ReadString('\n'))
	claims, userinfo := finish(config, strings.TrimSpace(callback), one)
	fmt.Println(string(must(json.Marshal(map[string]any{"claims": claims, "userinfo": userinfo}))))
}
