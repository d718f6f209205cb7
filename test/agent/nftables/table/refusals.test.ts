import test from 'ava';
import { refusalsIn } from '../../../../agent/nftables/table/refusals.ts';

test('refusalsIn() reads the age of refusals from nft, of both families', (t) => {
  const set = (family: string, elements: string) =>
    `table ${family} headgate_counts {\n\tset closed {\n\t\ttype ${family} . inet_service\n\t\tsize 65535\n\t\tflags dynamic,timeout\n\t\ttimeout 10s\n\t\telements = { ${elements} }\n\t}\n}`;
  const v4 = set('ip', '10.2.0.2 . 5353 expires 9s612ms,\n\t\t\t     10.2.0.3 . 53 expires 8s');
  const v6 = set('ip6', 'fd02::2 . 5353 expires 756ms');
  t.deepEqual(
    [...refusalsIn(`${v4}\n${v6}`)],
    [
      ['10.2.0.2:5353', 388],
      ['10.2.0.3:53', 2_000],
      ['fd02::2:5353', 9_244],
    ],
  );
  t.is(refusalsIn('table ip headgate_counts {\n\tset closed {\n\t\ttimeout 10s\n\t}\n}').size, 0);
});
