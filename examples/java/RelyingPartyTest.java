// Tests of RelyingParty.java against a provider of their own, without a browser, on JUnit 5:
//
//     mvn -q dependency:copy-dependencies && javac -cp 'lib/*' -d classes RelyingPartyTest.java
//     java -cp 'lib/*:classes' org.junit.platform.console.ConsoleLauncher execute --select-class RelyingPartyTest
//
// The provider is the program `corpid`, or with CORPID_IMAGE a container of that image. docs/testing.md is the guide.

import static org.junit.jupiter.api.Assertions.*;

import com.nimbusds.jose.*;
import com.nimbusds.jose.jwk.*;
import com.nimbusds.jose.jwk.gen.ECKeyGenerator;
import com.nimbusds.jose.util.JSONObjectUtils;
import java.io.*;
import java.net.*;
import java.net.http.*;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.*;
import java.util.*;
import org.junit.jupiter.api.*;

class RelyingPartyTest {
  static final String HARBOUR = "209900042K";
  static final HttpClient http = HttpClient.newHttpClient(); // it follows no redirect
  static final List<Process> running = new ArrayList<>();
  static Map<String, Object> provider; // issuer, sign_ins, people
  static String home;

  static Process start(Path folder, Map<String, String> environment, String... command) throws IOException {
    var builder = new ProcessBuilder(command).redirectError(folder.resolve(running.size() + ".log").toFile());
    builder.environment().putAll(environment);
    var process = builder.start();
    running.add(process);
    return process;
  }

  static int freePort() throws IOException {
    try (var socket = new ServerSocket(0, 0, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  /** The provider: its directory goes in as a file, one line of JSON comes out. */
  static Map<String, Object> startProvider(Path folder, int port, Map<String, Object> directory) throws Exception {
    var file = Files.writeString(folder.resolve("directory.json"), JSONObjectUtils.toJSONString(directory)).toString();
    var image = System.getenv("CORPID_IMAGE");
    var process = image == null
        ? start(folder, Map.of(), "corpid", "testing", "--port", "" + port, file)
        : start(folder, Map.of(), "docker", "run", "--rm", "--publish", "127.0.0.1:" + port + ":" + port,
            "--env", "CORPID_PORT=" + port, "--volume", file + ":/directory.json:ro", image, "testing", "/directory.json");
    var line = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
    assertNotNull(line, "the provider did not start: see " + folder);
    return JSONObjectUtils.parse(line);
  }

  /** `address` is where the relying party would send the browser; the result is where the provider would send it back. */
  static URI signIn(String address, Map<String, Object> order) throws Exception {
    var all = new HashMap<>(order);
    all.put("authorize_url", address);
    var body = HttpRequest.BodyPublishers.ofString(JSONObjectUtils.toJSONString(all));
    var request = HttpRequest.newBuilder(URI.create((String) provider.get("sign_ins")));
    var response = http.send(request.header("Content-Type", "application/json").POST(body).build(), BodyHandlers.ofString());
    assertEquals(200, response.statusCode(), response.body());
    return URI.create((String) JSONObjectUtils.parse(response.body()).get("callback_url"));
  }

  @BeforeAll
  static void startBoth() throws Exception {
    var folder = Files.createTempDirectory("rp-test-");
    int port = freePort(), own = freePort();
    home = "http://127.0.0.1:" + own;
    var made = new ECKeyGenerator(Curve.P_256);
    var signing = made.keyUse(KeyUse.SIGNATURE).algorithm(JWSAlgorithm.ES256).keyID("sig-1").generate();
    var encryption = made.keyUse(KeyUse.ENCRYPTION).algorithm(JWEAlgorithm.ECDH_ES_A256KW).keyID("enc-1").generate();
    var keys = Map.<String, Object>of("signing", signing.toJSONObject(), "encryption", encryption.toJSONObject());
    Files.writeString(folder.resolve("keys.json"), JSONObjectUtils.toJSONString(keys));
    provider = startProvider(folder, port, Map.of(
        "entities", Map.of(HARBOUR, Map.of("type", "UEN", "name", "Example Harbour", "country", "SG", "status", "Registered")),
        "services", Map.of("HARBOUR-PERMIT", Map.of("name", "Harbour permits", "roles", List.of("Applicant"))),
        "users", Map.of( // password and second factor are made
            "mei", Map.of("name", "Mei Example", "memberships", List.of(HARBOUR)),
            "kai", Map.of("name", "Kai Example", "memberships", List.of(HARBOUR))),
        "assignments", List.of(
            Map.of("user", "mei", "entity", HARBOUR, "service", "HARBOUR-PERMIT", "role", "Applicant"),
            Map.of("user", "kai", "entity", HARBOUR, "service", "HARBOUR-PERMIT", "role", "Applicant")),
        "clients", Map.of("java-rp", Map.of(
            "name", "Java example",
            "redirect_uris", List.of(home + "/callback"),
            "jwks", new JWKSet(List.<JWK>of(signing, encryption)).toJSONObject(true), // the public halves
            "scopes", List.of("openid", "authinfo", "tpauthinfo", "user.name", "entity.basic_profile.name"),
            "services", List.of("HARBOUR-PERMIT")))));
    var environment = Map.of("ISSUER", (String) provider.get("issuer"), "PORT", "" + own, "KEYS", folder + "/keys.json");
    start(folder, environment, "java", "-cp", System.getProperty("java.class.path"), "RelyingParty.java");
    for (var until = System.nanoTime() + 60_000_000_000L; ; Thread.sleep(100)) {
      try {
        http.send(HttpRequest.newBuilder(URI.create(home)).build(), BodyHandlers.discarding());
        break;
      } catch (IOException error) {
        assertTrue(System.nanoTime() < until, "the relying party did not start: see " + folder);
      }
    }
  }

  @AfterAll
  static void stopBoth() {
    running.forEach(Process::destroy);
  }

  static HttpResponse<String> shown(Map<String, Object> order) throws Exception {
    var login = http.send(HttpRequest.newBuilder(URI.create(home + "/login")).build(), BodyHandlers.discarding()).headers();
    var cookie = login.firstValue("Set-Cookie").orElseThrow().split(";")[0];
    var callback = signIn(login.firstValue("Location").orElseThrow(), order);
    return http.send(HttpRequest.newBuilder(callback).header("Cookie", cookie).build(), BodyHandlers.ofString());
  }

  @Test
  void rolesOfTheChosenEntityAreShown() throws Exception {
    var page = shown(Map.of("user", "mei", "entity", HARBOUR));
    assertEquals(200, page.statusCode());
    assertTrue(page.body().contains("HARBOUR-PERMIT") && page.body().contains("Applicant"), page.body());
  }

  @Test
  void withoutConsentNobodyIsSignedIn() throws Exception {
    var page = shown(Map.of("user", "kai", "entity", HARBOUR, "consent", "refuse"));
    assertEquals(403, page.statusCode());
    assertTrue(page.body().contains("access_denied"), page.body());
  }
}
