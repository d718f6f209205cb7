import test from 'ava';
import { createLog } from '../../../../agent/host/log.ts';
import { applyInterface } from '../../../../agent/octavia/network/apply-interface.ts';
import type { FoundNetwork } from '../../../../agent/octavia/network/found-network.ts';
import { type WantedInterface, wantedInterface } from '../../../../agent/octavia/network/wanted-interface.ts';
import { plugged, VIP_MAC } from '../../../support/octavia/plugs.ts';

const WANTED: WantedInterface = { ...wantedInterface(plugged(), 'SINGLE'), mtu: undefined };
const INVALID = 'RTNETLINK answers: Invalid argument; Command failed -:1';

/** A kernel: `refuse` gives what ip says against a line, '' if it carries the line out. */
function kernel(refuse: (line: string, round: number) => string = () => '') {
  const done = new Set<string>();
  const state = { rounds: 0, tentative: 0, waits: 0, logged: [] as string[] };
  const has = (line: string): boolean => done.has(line);
  const found = async (): Promise<FoundNetwork> => {
    const isTentative = state.tentative > 0 && state.tentative-- > 0;
    return {
      links: [{ name: 'eth1', index: 2, mac: VIP_MAC, mtu: 1500, isUp: has('link set dev eth1 up') }],
      addresses: WANTED.addresses
        .filter(({ address, prefix }) => has(`address add ${address}/${prefix} dev eth1`))
        .map((each) => ({ ...each, device: 'eth1', isPermanent: true, isTentative })),
      routes: WANTED.routes
        .filter(({ table, destination }) =>
          [...done].some(
            (line) => line.startsWith(`route add ${destination} `) && line.includes(` table ${table} `),
          ),
        )
        .map((each) => ({ ...each, device: 'eth1', protocol: 4 })),
      rules: (WANTED.rules ?? [])
        .filter(({ from }) => has(`rule add from ${from} table 1 protocol static`))
        .map((each) => ({ ...each, priority: 1, protocol: 4 })),
    };
  };
  const ip = {
    found,
    batch: async (_: string, lines: readonly string[]): Promise<string> => {
      state.rounds++;
      const said = lines.map((line) => {
        const fault = refuse(line, state.rounds);
        if (fault === '') done.add(line);
        return fault;
      });
      return said.filter((each) => each !== '').join('; ');
    },
  };
  const log = createLog({
    level: 'warn',
    format: 'json',
    destination: { write: (line) => state.logged.push(line) },
  });
  const wait = async (): Promise<void> => {
    state.waits++;
  };
  return { state, done, options: { ip, log, wait } };
}

test('applyInterface() says if something has changed', async (t) => {
  const { options } = kernel();
  t.true(await applyInterface(WANTED, options));
  t.false(await applyInterface(WANTED, options));
});

test('applyInterface() tries a route again that the kernel does not take right after its address', async (t) => {
  let refusals = 5;
  const { options, state } = kernel((line) =>
    line.includes('src 10.9.0.100') && refusals-- > 0 ? INVALID : '',
  );
  t.true(await applyInterface(WANTED, options));
  t.is(state.waits, 5);
  t.deepEqual(state.logged, []);
  t.false(await applyInterface(WANTED, options));
});

test('applyInterface() waits for duplicate address detection before the routes', async (t) => {
  const { options, state, done } = kernel();
  state.tentative = 4;
  await applyInterface(WANTED, options);
  t.true(state.waits >= 2);
  t.true([...done].some((line) => line.startsWith('rule add')));
});

test('applyInterface() sets all others if one route is refused, and logs it', async (t) => {
  const { options, state, done } = kernel((line) =>
    line.startsWith('route add 10.50.') ? 'Error: Nexthop has invalid gateway' : '',
  );
  t.true(await applyInterface(WANTED, options));
  t.is(state.logged.length, 1);
  t.regex(state.logged[0] ?? '', /invalid gateway.*route add 10\.50\.0\.0/);
  t.true([...done].some((line) => line.startsWith('rule add')));
  t.is(state.waits, 0);
});

test('applyInterface() fails if an address is refused', async (t) => {
  const { options } = kernel((line) =>
    line.startsWith('address add 10.9.0.100') ? 'Error: No buffer space' : '',
  );
  await t.throwsAsync(applyInterface(WANTED, options), {
    code: 'COMMAND_FAILED',
    message: /eth1.*No buffer space/,
  });
});

test('applyInterface() ends if the kernel never takes a step', async (t) => {
  const { options, state } = kernel((line) => (line.startsWith('route') ? INVALID : ''));
  t.true(await applyInterface(WANTED, options));
  t.is(state.logged.length, 1);
  t.true(state.waits < 30);
});
