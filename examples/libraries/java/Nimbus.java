// A relying party on Nimbus' OAuth 2.0 SDK. The argument is its registration (docs/libraries.md); it prints the address for
// the browser, reads the callback, and prints what it learned.

import com.nimbusds.jose.*;
import com.nimbusds.jose.jwk.*;
import com.nimbusds.jose.jwk.gen.ECKeyGenerator;
import com.nimbusds.jose.jwk.source.JWKSourceBuilder;
import com.nimbusds.jose.proc.*;
import com.nimbusds.jose.util.JSONObjectUtils;
import com.nimbusds.jwt.*;
import com.nimbusds.oauth2.sdk.*;
import com.nimbusds.oauth2.sdk.auth.*;
import com.nimbusds.oauth2.sdk.dpop.DefaultDPoPProofFactory;
import com.nimbusds.oauth2.sdk.http.*;
import com.nimbusds.oauth2.sdk.id.*;
import com.nimbusds.oauth2.sdk.pkce.*;
import com.nimbusds.oauth2.sdk.token.*;
import com.nimbusds.openid.connect.sdk.*;
import com.nimbusds.openid.connect.sdk.Nonce;
import com.nimbusds.openid.connect.sdk.op.OIDCProviderMetadata;
import com.nimbusds.openid.connect.sdk.validators.*;
import java.io.*;
import java.net.URI;
import java.nio.file.*;
import java.util.*;

public class Nimbus {
  static Map<String, Object> rp;

  static boolean is(String member) {
    return Boolean.TRUE.equals(rp.get(member));
  }

  static String text(String member) {
    return (String) rp.get(member);
  }

  // piece
  record Attempt(State state, Nonce nonce, CodeVerifier verifier, ECKey key) {}
  static Issuer issuer;
  static ClientID client;
  static ECKey signing;
  static OIDCProviderMetadata server;
  static IDTokenValidator tokens; // it fetches the keys, and again if it lacks one

  static void connect() throws Exception {
    issuer = new Issuer(text("issuer"));
    client = new ClientID(text("client_id"));
    signing = ECKey.parse(JSONObjectUtils.getJSONObject(rp, "signing"));
    server = OIDCProviderMetadata.resolve(issuer); // its issuer must be ours
    var published = JWKSourceBuilder.create(server.getJWKSetURI().toURL()).rateLimited(1_000).build();
    var verify = new JWSVerificationKeySelector<>(JWSAlgorithm.ES256, published); // and nothing else
    var key = ECKey.parse(JSONObjectUtils.getJSONObject(rp, "encryption")).toECPrivateKey();
    tokens = new IDTokenValidator(issuer, client, verify, (header, context) -> List.of(key));
  }

  /** Who we are, made for each request. The audience is the issuer; the SDK's own is the endpoint. */
  static ClientAuthentication ourselves() throws Exception {
    var end = new Date(System.currentTimeMillis() + 60_000);
    var us = new JWTAuthenticationClaimsSet(client, List.of(new Audience(issuer)), end, null, new Date(), new JWTID());
    var algorithm = JWSAlgorithm.parse(signing.getAlgorithm().getName());
    return new PrivateKeyJWT(us, algorithm, signing.toPrivateKey(), signing.getKeyID(), null);
  }

  static HTTPResponse ask(HTTPRequest request, ECKey key, AccessToken token) throws Exception {
    if (key != null) {
      var proof = new DefaultDPoPProofFactory(key, JWSAlgorithm.ES256);
      request.setDPoP(proof.createDPoPJWT(request.getMethod().name(), request.getURI(), token, null));
    }
    var response = request.send();
    check(response.indicatesSuccess(), response.getBody() + response.getHeaderMap());
    return response;
  }

  static void check(boolean good, String otherwise) throws GeneralException {
    if (!good) throw new GeneralException(otherwise);
  }

  static URI begin(Attempt attempt) throws Exception {
    var parameters = JSONObjectUtils.getJSONObject(rp, "parameters");
    var scope = Scope.parse((String) parameters.remove("scope"));
    var request = new AuthenticationRequest.Builder(ResponseType.CODE, scope, client, URI.create(text("redirect_uri")))
        .endpointURI(server.getAuthorizationEndpointURI()).state(attempt.state()).nonce(attempt.nonce())
        .codeChallenge(attempt.verifier(), CodeChallengeMethod.S256);
    parameters.forEach((name, value) -> request.customParameter(name, (String) value));
    var full = request.build();
    if (!is("pushed")) return full.toURI();
    var push = new PushedAuthorizationRequest(server.getPushedAuthorizationRequestEndpointURI(), ourselves(), full);
    var answer = ask(push.toHTTPRequest(), attempt.key(), null);
    var pushed = PushedAuthorizationSuccessResponse.parse(answer).getRequestURI();
    return new AuthorizationRequest.Builder(pushed, client).endpointURI(full.getEndpointURI()).build().toURI();
  }

  static Map<String, Object> finish(URI callback, Attempt attempt) throws Exception {
    var answer = AuthenticationResponseParser.parse(callback);
    check(attempt.state().equals(answer.getState()), "the callback is of another sign-in");
    check(issuer.equals(answer.getIssuer()) || !server.supportsAuthorizationResponseIssuerParam(), "another provider");
    check(answer.indicatesSuccess(), callback.getQuery());
    var code = answer.toSuccessResponse().getAuthorizationCode();
    var grant = new AuthorizationCodeGrant(code, URI.create(text("redirect_uri")), attempt.verifier());
    var request = new TokenRequest.Builder(server.getTokenEndpointURI(), ourselves(), grant).build();
    var received = OIDCTokenResponse.parse(ask(request.toHTTPRequest(), attempt.key(), null)).getOIDCTokens();
    var token = received.getAccessToken();
    check(token.getType().equals(is("bound") ? AccessTokenType.DPOP : AccessTokenType.BEARER), "another type of token");
    check(received.getIDToken() instanceof EncryptedJWT == is("id_token_encrypted"), "encryption");
    var claims = tokens.validate(received.getIDToken(), attempt.nonce());
    check(claims.getAudience().size() == 1, "the ID token is for others, too");
    AccessTokenValidator.validate(token, JWSAlgorithm.ES256, claims.getAccessTokenHash());
    var resource = URI.create((String) server.toJSONObject().get(text("resource")));
    var body = ask(new UserInfoRequest(resource, token).toHTTPRequest(), attempt.key(), token).getBody();
    var userinfo = is("userinfo_signed") // like an ID token
        ? tokens.validate(JWTParser.parse(body), null).toJSONObject()
        : JSONObjectUtils.parse(body);
    check(claims.getSubject().getValue().equals(userinfo.get("sub")), "userinfo is about somebody else");
    return Map.of("claims", claims.toJSONObject(), "userinfo", userinfo);
  }

  // end

  public static void main(String[] arguments) throws Exception {
    rp = JSONObjectUtils.parse(Files.readString(Path.of(arguments[0])));
    connect();
    var key = is("bound") ? new ECKeyGenerator(Curve.P_256).generate() : null; // one key for this sign-in
    var attempt = new Attempt(new State(), new Nonce(), new CodeVerifier(), key);
    System.out.println(begin(attempt));
    var callback = new BufferedReader(new InputStreamReader(System.in)).readLine();
    System.out.println(JSONObjectUtils.toJSONString(finish(URI.create(callback), attempt)));
  }
}
