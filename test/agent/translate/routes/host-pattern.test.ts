import test from 'ava';
import fc from 'fast-check';
import { commonHosts, hostPattern, hostText } from '../../../../agent/translate/routes/host-pattern.ts';

const common = (a: string, b: string): string | undefined => {
  const found = commonHosts(hostPattern(a, 'labels'), hostPattern(b, 'labels'));
  return found && hostText(found);
};

// The examples of `hostnames` in the specification of HTTPRoute, and the edges around them.
const CASES: readonly (readonly [listener: string, route: string, common: string | undefined])[] = [
  ['', '', '*'],
  ['', 'example.com', 'example.com'],
  ['', '*.example.com', '*.example.com'],
  ['test.example.com', 'test.example.com', 'test.example.com'],
  ['test.example.com', '*.example.com', 'test.example.com'],
  ['test.example.com', '*.com', 'test.example.com'],
  ['test.example.com', 'test.example.net', undefined],
  ['*.example.com', 'test.example.com', 'test.example.com'],
  ['*.example.com', 'foo.test.example.com', 'foo.test.example.com'],
  ['*.example.com', '*.example.com', '*.example.com'],
  ['*.example.com', '*.com', '*.example.com'],
  ['*.example.com', '*.test.example.com', '*.test.example.com'],
  ['*.example.com', 'example.com', undefined],
  ['*.example.com', 'badexample.com', undefined],
  ['*.example.com', '*.badexample.com', undefined],
];

for (const [listener, route, expected] of CASES)
  test(`Listener "${listener}" and route "${route}" have in common ${expected ?? 'nothing'}`, (t) => {
    t.is(common(listener, route), expected);
    t.is(common(route, listener), expected);
  });

test('A host is in what two patterns have in common if, and only if, both match it', (t) => {
  const label = fc.constantFrom('a', 'b');
  const name = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.'));
  const hostname = fc.oneof(
    name,
    name.map((each) => `*.${each}`),
    fc.constant(''),
  );
  const covers = (pattern: string, host: string) =>
    pattern === '' || (pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) : host === pattern);
  fc.assert(
    fc.property(hostname, hostname, name, (a, b, host) => {
      const both = common(a, b);
      const isCommon = both !== undefined && covers(both === '*' ? '' : both, host);
      return isCommon === (covers(a, host) && covers(b, host));
    }),
  );
  t.pass();
});
