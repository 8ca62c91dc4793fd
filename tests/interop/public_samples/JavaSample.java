// A stand-in for the public service's sample relying party for Java, from what is known of it: its settings in one file, its
// own key set at its own address, one thread, Nimbus' SDK; the endpoint as audience, an exp in its proofs, no
// authentication_context_type. Told where to register and what, it does so itself, and all its requests go through
// java.net.http.HttpClient, with bodies from streams.

import com.nimbusds.jose.*;
import com.nimbusds.jose.crypto.ECDSASigner;
import com.nimbusds.jose.jwk.*;
import com.nimbusds.jose.jwk.gen.ECKeyGenerator;
import com.nimbusds.jose.jwk.source.*;
import com.nimbusds.jose.proc.*;
import com.nimbusds.jose.util.JSONObjectUtils;
import com.nimbusds.jwt.*;
import com.nimbusds.jwt.proc.DefaultJWTProcessor;
import com.nimbusds.oauth2.sdk.*;
import com.nimbusds.oauth2.sdk.auth.*;
import com.nimbusds.oauth2.sdk.dpop.DPoPUtils;
import com.nimbusds.oauth2.sdk.http.*;
import com.nimbusds.oauth2.sdk.id.*;
import com.nimbusds.oauth2.sdk.pkce.*;
import com.nimbusds.oauth2.sdk.token.AccessToken;
import com.nimbusds.openid.connect.sdk.*;
import com.nimbusds.openid.connect.sdk.Nonce;
import com.nimbusds.openid.connect.sdk.op.OIDCProviderMetadata;
import com.nimbusds.openid.connect.sdk.validators.IDTokenValidator;
import com.sun.net.httpserver.*;
import java.io.*;
import java.net.*;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;

public class JavaSample {
  record Attempt(CodeVerifier verifier, Nonce nonce, State state, ECKey key) {}

  static Map<String, Object> settings, keys;
  static OIDCProviderMetadata provider;
  static JWSKeySelector<SecurityContext> published;
  static JWKSource<SecurityContext> decrypting;
  static Attempt attempt;
  static String person = "{}";
  static HttpClient client; // of version HTTP/2, unless told otherwise: it offers h2c with each request

  static String setting(String name) {
    return settings.get(name).toString();
  }

  static ECKey key(String name) throws Exception {
    return ECKey.parse(JSONObjectUtils.getJSONObject(keys, name));
  }

  static Date inAMinute() {
    return new Date(System.currentTimeMillis() + 60_000);
  }

  static ClientAuthentication ourselves(URI endpoint) throws Exception {
    var audience = new Audience(endpoint.toString()).toSingleAudienceList();
    var claims = new JWTAuthenticationClaimsSet(
        new ClientID(setting("CLIENT_ID")), audience, inAMinute(), null, new Date(), new JWTID());
    var signing = key("PRIVATE_SIG_KEY");
    return new PrivateKeyJWT(claims, JWSAlgorithm.ES256, signing.toPrivateKey(), signing.getKeyID(), null);
  }

  static HTTPResponse ask(HTTPRequest request, AccessToken token) throws Exception {
    var claims = DPoPUtils.createJWTClaimsSet(
        new JWTID(), request.getMethod().name(), request.getURI(), new Date(), token, null);
    var header = new JWSHeader.Builder(JWSAlgorithm.ES256)
        .type(new JOSEObjectType("dpop+jwt")).jwk(attempt.key.toPublicJWK()).build();
    var proof = new SignedJWT(header, new JWTClaimsSet.Builder(claims).expirationTime(inAMinute()).build());
    proof.sign(new ECDSASigner(attempt.key));
    request.setDPoP(proof);
    var answer = client == null ? request.send() : streamed(request);
    if (!answer.indicatesSuccess()) throw new GeneralException(answer.getStatusCode() + " " + answer.getBody());
    return answer;
  }

  static HTTPResponse streamed(HTTPRequest request) throws Exception {
    var sent = HttpRequest.newBuilder(request.getURI()).method(request.getMethod().name(), body(request.getBody()));
    request.getHeaderMap().forEach((name, values) -> values.forEach(value -> sent.header(name, value)));
    var received = client.send(sent.build(), HttpResponse.BodyHandlers.ofString());
    var answer = new HTTPResponse(received.statusCode());
    received.headers().firstValue("Content-Type").ifPresent(type -> answer.setHeader("Content-Type", type));
    answer.setBody(received.body());
    return answer;
  }

  static HttpRequest.BodyPublisher body(String text) { // of unknown length: in chunks
    if (text == null) return HttpRequest.BodyPublishers.noBody();
    var bytes = text.getBytes(StandardCharsets.UTF_8);
    return HttpRequest.BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(bytes));
  }

  static void register(URI address, String members) throws Exception {
    client = HttpClient.newHttpClient();
    var sent = HttpRequest.newBuilder(address).header("Content-Type", "application/json").POST(body(members)).build();
    System.out.println("Registered: " + client.send(sent, HttpResponse.BodyHandlers.ofString()).body());
  }

  static URI login() throws Exception {
    var key = new ECKeyGenerator(Curve.P_256).algorithm(JWSAlgorithm.ES256).generate();
    attempt = new Attempt(new CodeVerifier(), new Nonce(), new State(), key);
    var us = new ClientID(setting("CLIENT_ID"));
    var scope = Scope.parse(setting("SCOPES"));
    var asked = new AuthenticationRequest.Builder(ResponseType.CODE, scope, us, URI.create(setting("REDIRECT_URI")))
        .endpointURI(provider.getAuthorizationEndpointURI()).state(attempt.state).nonce(attempt.nonce)
        .codeChallenge(attempt.verifier, CodeChallengeMethod.S256).build();
    var to = provider.getPushedAuthorizationRequestEndpointURI();
    var answer = ask(new PushedAuthorizationRequest(to, ourselves(to), asked).toHTTPRequest(), null);
    var pushed = PushedAuthorizationResponse.parse(answer).toSuccessResponse().getRequestURI();
    return new AuthorizationRequest.Builder(ResponseType.CODE, us).requestURI(pushed)
        .endpointURI(provider.getAuthorizationEndpointURI()).build().toURI();
  }

  static JWEKeySelector<SecurityContext> opening(String token) throws Exception {
    var header = JWEObject.parse(token).getHeader(); // not encrypted: an error
    return new JWEDecryptionKeySelector<>(header.getAlgorithm(), header.getEncryptionMethod(), decrypting);
  }

  static URI callback(URI address) throws Exception {
    var arrived = AuthenticationResponseParser.parse(address);
    if (!attempt.state.equals(arrived.getState())) throw new GeneralException("another state");
    if (!arrived.indicatesSuccess()) throw new GeneralException(address.getQuery());
    var to = provider.getTokenEndpointURI();
    var grant = new AuthorizationCodeGrant(
        arrived.toSuccessResponse().getAuthorizationCode(), URI.create(setting("REDIRECT_URI")), attempt.verifier);
    var answer = ask(new TokenRequest.Builder(to, ourselves(to), grant).build().toHTTPRequest(), null);
    var tokens = ((OIDCTokenResponse) OIDCTokenResponseParser.parse(answer).toSuccessResponse()).getOIDCTokens();
    var validator = new IDTokenValidator(
        provider.getIssuer(), new ClientID(setting("CLIENT_ID")), published, opening(tokens.getIDTokenString()));
    var claims = validator.validate(tokens.getIDToken(), attempt.nonce).toJSONObject();
    var token = tokens.getDPoPAccessToken();
    var read = ask(new UserInfoRequest(provider.getUserInfoEndpointURI(), token).toHTTPRequest(), token);
    var userinfo = UserInfoResponse.parse(read).toSuccessResponse().getUserInfoJWT();
    var processor = new DefaultJWTProcessor<>();
    processor.setJWSKeySelector(published);
    processor.setJWEKeySelector(opening(userinfo.getParsedString()));
    var told = processor.process(userinfo, null).toJSONObject();
    System.out.println("ID token: " + JSONObjectUtils.toJSONString(claims));
    System.out.println("userinfo: " + JSONObjectUtils.toJSONString(told));
    var both = new HashMap<String, Object>(claims);
    both.putAll(told);
    person = JSONObjectUtils.toJSONString(both);
    return URI.create("/user");
  }

  static void serve(HttpExchange exchange) throws IOException {
    var status = 200;
    var text = "";
    try {
      URI further = null;
      switch (exchange.getRequestURI().getPath()) {
        case "/.well-known/jwks.json" -> text = "{\"keys\":[" + key("PUBLIC_SIG_KEY") + "," + key("PUBLIC_ENC_KEY") + "]}";
        case "/login" -> further = login();
        case "/callback" -> further = callback(URI.create(setting("REDIRECT_URI")).resolve(exchange.getRequestURI()));
        default -> text = person;
      }
      if (further != null) {
        exchange.getResponseHeaders().set("Location", further.toString());
        status = 302;
      }
    } catch (Exception error) {
      error.printStackTrace();
      text = error.toString();
      status = 401;
    }
    exchange.getResponseHeaders().set("Content-Type", "application/json");
    exchange.sendResponseHeaders(status, 0);
    exchange.getResponseBody().write(text.getBytes(StandardCharsets.UTF_8));
    exchange.close();
  }

  public static void main(String[] arguments) throws Exception {
    settings = JSONObjectUtils.parse(Files.readString(Path.of(arguments[0])));
    keys = JSONObjectUtils.getJSONObject(settings, "KEYS");
    provider = OIDCProviderMetadata.resolve(new Issuer(setting("ISSUER_URL")));
    published = JWSAlgorithmFamilyJWSKeySelector.fromJWKSource(
        JWKSourceBuilder.create(provider.getJWKSetURI().toURL()).build());
    decrypting = new ImmutableJWKSet<>(new JWKSet(key("PRIVATE_ENC_KEY")));
    var server = HttpServer.create(new InetSocketAddress(Integer.parseInt(setting("SERVER_PORT"))), 0);
    server.createContext("/", JavaSample::serve);
    server.setExecutor(null); // one request at a time
    server.start();
    if (arguments.length > 1) register(URI.create(arguments[1]), arguments[2]);
    System.out.println("Open http://localhost:" + setting("SERVER_PORT"));
  }
}
