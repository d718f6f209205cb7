// A listener as its rows must be while the worker still has the frontends of an earlier one: the worker chooses by the name in
// the handshake, or does not, until the reload. What is passed through then, and what ends there, follows the routes of now. Pure.

import type { Listener } from '../../model/load-balancer.ts';
import type { HttpRouting, TlsRouting } from '../../model/routes.ts';

const NO_REQUESTS: HttpRouting = { kind: 'http', sections: [], detectMisdirected: false };
const ALL_ENDED: TlsRouting = {
  kind: 'tls',
  hosts: [{ host: { kind: 'any', suffix: '' }, backends: [], isEnded: true }],
};

/** `booted`: the listener that the worker booted with; undefined for one that it did not have. */
export function untilReload(listener: Listener, booted: Listener | undefined): Listener {
  const { routing, dispatch } = listener;
  const chose = booted?.dispatch !== undefined;
  if (booted === undefined || routing === undefined || chose === (dispatch !== undefined)) return listener;
  // All TLS of the worker goes through the frontend that chooses.
  if (chose && routing.kind === 'tls') return { ...listener, routing: NO_REQUESTS, dispatch: routing };
  if (chose) return { ...listener, dispatch: ALL_ENDED };
  const { dispatch: passing, ...others } = listener;
  // The worker ends no TLS here.
  if (booted.routing?.kind === 'tls' && passing !== undefined)
    return { ...others, routing: onlyPassed(passing) };
  return listener;
}

/** Each has the same tables as long as it is the same value. */
const passedOf = new WeakMap<TlsRouting, TlsRouting>();

function onlyPassed(dispatch: TlsRouting): TlsRouting {
  const known = passedOf.get(dispatch);
  if (known !== undefined) return known;
  const passed: TlsRouting = { ...dispatch, hosts: dispatch.hosts.filter(({ isEnded }) => !isEnded) };
  passedOf.set(dispatch, passed);
  return passed;
}
