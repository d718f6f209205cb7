import test from 'ava';
import { condensed, gatewayResults, hasEnded, unlistedFeatures } from '../../scripts/gateway-results.ts';

const LOG = `=== RUN   TestConformance
    conformance.go:76: Running conformance tests with:
=== RUN   TestConformance/HTTPRouteWeight
    apply.go:251: 2026-11-26T07:00:00Z: Creating weighted HTTPRoute
=== RUN   TestConformance/HTTPRouteWeight/Requests_are_spread
=== NAME  TestConformance/HTTPRouteWeight
    weight.go:9: of the first test
=== RUN   TestConformance/GatewayModifyListeners
=== RUN   TestConformance/GatewayModifyListeners/adds_a_listener
    helpers.go:1: no such condition
=== RUN   TestConformance/GatewayModifyListeners/removes_a_listener
=== RUN   TestConformance/TLSRouteListenerTerminateNotSupported
    tls.go:49: Terminate is supported
=== RUN   TestConformance/ListenerSetHTTPRouting
    conformance.go:72: Skipping ListenerSetHTTPRouting: suite does not support ListenerSet
=== NAME  TestConformance
    conformance.go:158: Conformance report:
--- FAIL: TestConformance (9.00s)
    --- PASS: TestConformance/HTTPRouteWeight (0.05s)
        --- PASS: TestConformance/HTTPRouteWeight/Requests_are_spread (1.25s)
    --- FAIL: TestConformance/GatewayModifyListeners (30.04s)
        --- FAIL: TestConformance/GatewayModifyListeners/adds_a_listener (30.01s)
        --- PASS: TestConformance/GatewayModifyListeners/removes_a_listener (0.01s)
    --- SKIP: TestConformance/TLSRouteListenerTerminateNotSupported (0.00s)
    --- SKIP: TestConformance/ListenerSetHTTPRouting (0.00s)
FAIL
`;

test('gatewayResults() gives each test that has run its outcome, its time and the parts that failed', (t) => {
  t.deepEqual(
    gatewayResults(LOG).map(({ output, ...rest }) => rest),
    [
      { name: 'HTTPRouteWeight', outcome: 'passed', seconds: 1.25, reasons: [] },
      { name: 'GatewayModifyListeners', outcome: 'failed', seconds: 30.04, reasons: ['adds_a_listener'] },
      {
        name: 'TLSRouteListenerTerminateNotSupported',
        outcome: 'skipped',
        seconds: 0,
        reasons: ['Terminate is supported'],
      },
    ],
  );
});

test('gatewayResults() gives each test the lines of the log that are its own', (t) => {
  const [weight, listeners] = gatewayResults(LOG);
  t.true(weight?.output.includes('Creating weighted HTTPRoute'));
  t.true(weight?.output.includes('of the first test'));
  t.false(weight?.output.includes('no such condition'));
  t.true(listeners?.output.includes('no such condition'));
  t.false(listeners?.output.includes('Conformance report'));
});

test('gatewayResults() leaves out a test whose feature is not claimed', (t) => {
  t.false(gatewayResults(LOG).some(({ name }) => name === 'ListenerSetHTTPRouting'));
});

test('gatewayResults() gives the message of a test that fails without parts', (t) => {
  const [result] = gatewayResults(`=== RUN   TestConformance/UDPRoute
    helpers.go:108:
        \tError:      \tReceived unexpected error:
        \tTest:       \tTestConformance/UDPRoute
        \tMessages:   \tno Gateway is ready
    apply.go:279: 2026-11-26T08:26:54.376598824Z: Deleting udp Gateway
    --- FAIL: TestConformance/UDPRoute (0.10s)
`);
  t.deepEqual(result?.reasons, ['no Gateway is ready']);
});

test('condensed() has equal lines once', (t) => {
  const line = (second: number, text: string) => `  a.go:1: 2026-11-26T08:10:4${second}.7375Z: ${text}\n`;
  t.is(
    condensed(line(1, 'waits') + line(2, 'asks') + line(3, 'waits') + line(4, 'ends')),
    '  a.go:1: waits (2 times)\n  a.go:1: asks\n  a.go:1: ends\n',
  );
});

test('hasEnded() is false for a suite that was killed', (t) => {
  t.true(hasEnded(LOG));
  t.false(hasEnded(LOG.slice(0, LOG.indexOf('--- FAIL: TestConformance ('))));
});

test('unlistedFeatures() gives the unsupported features of all profiles that a list lacks, once', (t) => {
  const report = `kind: ConformanceReport
profiles:
- core: { result: success }
  extended: { unsupportedFeatures: [ListenerSet, HTTPRouteCORS] }
  name: GATEWAY-HTTP
- core: { result: success }
  extended: { unsupportedFeatures: [ListenerSet, Later] }
  name: GATEWAY-TLS
`;
  t.deepEqual(unlistedFeatures(report, ['HTTPRouteCORS']), ['ListenerSet', 'Later']);
  t.deepEqual(unlistedFeatures('profiles: null', []), []);
});
