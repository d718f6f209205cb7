// One check between a client and the members: what it looks at, and what it does with the client. Values only.

import type { Listener, MemberTls } from '../../../model/load-balancer.ts';
import type { HostPattern, RouteRule } from '../../../model/routes.ts';
import type { AskedRequest } from './asked-request.ts';
import type { Client } from './client.ts';
import type { Proofs } from './proofs.ts';

export interface Check {
  readonly name: string;
  /** undefined if the listener or the rule asks for nothing of the kind. */
  readonly of: (way: Way) => CheckResult | undefined;
}

export interface CheckResult {
  /**
   * `limited`: it depends on how much the client sends, or on chance. `asked`: it depends on what is not known of the client.
   * `answered`: HAProxy answers what is not for members. `not reached`: a check before it ends the request.
   */
  readonly result: 'passed' | 'limited' | 'asked' | 'refused' | 'redirected' | 'answered' | 'not reached';
  /** Whom the check lets in, or what it does, in words. */
  readonly detail: string;
  /** What a client gets that it does not let in; '' if it lets all in. */
  readonly answer: string;
  /** What a server is asked, a line for each part; no value of a header that the client sends. Absent: none is asked. */
  readonly question?: readonly string[];
}

/** A client's way to a listener, and with a request to one of its rules. */
export interface Way {
  readonly listener: Listener;
  readonly client: Client;
  /** The name in the TLS handshake; '' if there is none, because the client connects to an address. */
  readonly serverName: string;
  /** Members end its TLS. */
  readonly isPassedOn?: true;
  /** undefined if it is not about a request. */
  readonly request: RequestWay | undefined;
  readonly proofs: Proofs;
  /** Completes a limit that each of several active hosts counts for itself: `, at each of 3 hosts`; '' for one active host. */
  readonly atEachHost: string;
}

export interface RequestWay {
  /** Absent: any of the rule. */
  readonly asked?: AskedRequest;
  /** Why HAProxy refuses the path, in words; '' if it does not. */
  readonly refusedPath: string;
  /** In its one spelling; absent: any path of the rule. */
  readonly path?: string;
  /** Its host belongs to another listener of the Gateway than the name in the handshake. */
  readonly isMisdirected?: boolean;
  /** Why its host, some of whose paths are guarded, refuses it; '' if it does not. */
  readonly ambiguity: string;
  /** The hostname of the Gateway's listener that the host belongs to; undefined: to none. */
  readonly hostname: HostPattern | undefined;
  readonly route: {
    /** How it was found, or why there is none. */
    readonly words: string;
    readonly isFound: boolean;
    /** What a client gets without one. */
    readonly answer: string;
  };
  /** undefined if none matches, or if there are no rules for requests. */
  readonly rule: RouteRule | undefined;
  /** Names of rules before it of which only HAProxy can tell whether they match. */
  readonly perhaps: readonly string[];
  /**
   * '' as the name of one that does not exist; `ready`: its members that take requests; `clients`: CIDRs of those that NetworkPolicies
   * let in, absent for all; `tls`: to its members, if that is known.
   */
  readonly pools: readonly {
    readonly name: string;
    readonly weight: number;
    readonly ready: number;
    readonly clients?: readonly string[];
    readonly tls?: MemberTls;
  }[];
}

export const CLOSED = 'the connection is closed';
export const NO_HANDSHAKE = 'the handshake is refused';

export function passed(detail: string): CheckResult {
  return { result: 'passed', detail, answer: '' };
}

export function limited(detail: string, answer: string): CheckResult {
  return { result: 'limited', detail, answer };
}

export function asked(detail: string, answer: string): CheckResult {
  return { result: 'asked', detail, answer };
}

export function refused(detail: string, answer: string): CheckResult {
  return { result: 'refused', detail, answer };
}
