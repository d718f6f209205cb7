// Routes of interfaces: the VIP's and those to members, their names, their rules.

import { parseAddress } from '../../base/ip.ts';
import type { AmphoraNetwork } from '../parts.ts';
import type { Amphora } from './amphora.ts';
import { readInterfaceRules, readNetworkPlug, readVipPlug, WrongForm, WrongValue } from './plug-requests.ts';
import { invalid, json, ok, type Reply, routerError } from './reply.ts';
import type { Route } from './router.ts';

const MAX_BYTES = 1024 * 1024;

export function networkRoutes({ network }: Amphora): readonly Route[] {
  return [
    {
      method: 'POST',
      pattern: 'plug/vip/:vip',
      answer: async (call) => {
        const body = String(await call.body(MAX_BYTES));
        const plug = read(
          () => readVipPlug(call.param('vip'), body),
          (why) => json(400, { message: `Invalid VIP: ${why}` }),
        );
        if ('refused' in plug) return plug.refused;
        const name = await network.plugVip(plug.value);
        const { vip, additionalVips } = plug.value;
        const addresses = [vip, ...additionalVips].map(({ address }) => address);
        return ok(202, `VIPs plugged on interface ${name}: ${addresses.join(', ')}`);
      },
    },
    {
      method: 'POST',
      pattern: 'plug/network',
      answer: async (call) => {
        const body = String(await call.body(MAX_BYTES));
        const plug = read(
          () => readNetworkPlug(body),
          (why) => json(400, { message: `Invalid network port: ${why}` }),
        );
        if ('refused' in plug) return plug.refused;
        const { name, isKnown } = await network.plugNetwork(plug.value);
        return ok(202, isKnown ? `Updated existing interface ${name}` : `Plugged on interface ${name}`);
      },
    },
    {
      method: 'GET',
      pattern: 'interface/:ip',
      answer: async (call) => {
        const found = await interfaceOf(network, call.param('ip'));
        return typeof found === 'string' ? json(200, { message: 'OK', interface: found }) : found.refused;
      },
    },
    {
      method: 'PUT',
      pattern: 'interface/:ip/rules',
      answer: async (call) => {
        const body = String(await call.body(MAX_BYTES));
        const found = await interfaceOf(network, call.param('ip'));
        if (typeof found !== 'string') return found.refused;
        const rules = read(() => readInterfaceRules(body), invalid);
        if ('refused' in rules) return rules.refused;
        await network.setRules(parseAddress(call.param('ip'))?.address ?? '', rules.value);
        return ok(200);
      },
    },
  ];
}

type Read<T> = { readonly value: T } | { readonly refused: Reply };

function read<T>(value: () => T, refuse: (why: string) => Reply): Read<T> {
  try {
    return { value: value() };
  } catch (error) {
    if (error instanceof WrongForm) return { refused: routerError(400, error.message) };
    if (error instanceof WrongValue) return { refused: refuse(error.message) };
    throw error;
  }
}

async function interfaceOf(
  network: AmphoraNetwork,
  ip: string,
): Promise<string | { readonly refused: Reply }> {
  const address = parseAddress(ip)?.address;
  if (address === undefined) return { refused: json(400, { message: 'Invalid IP address' }) };
  const name = await network.interfaceOf(address);
  return name ?? { refused: json(404, { message: 'Error interface not found for IP address' }) };
}
