// The profiles of pools: what HAProxy can only do for a whole pool, and routes of one Service may ask for differently. The words
// are part of the pool's name. Pure.

import { createHash } from 'node:crypto';
import type { PoolRetry } from '../../model/load-balancer.ts';
import type { AskedTls } from '../../model/pool-uses.ts';

export interface PoolProfile {
  readonly mode: 'tcp' | 'http';
  /** What members get, whatever the Service's `appProtocol` says. */
  readonly httpVersion: '1.1' | '2';
  /** Members get TLS, and are not verified, unless a BackendTLSPolicy says more. */
  readonly isTls: boolean;
  /** Clients keep their member by a cookie. */
  readonly isSticky: boolean;
  /** A member is chosen by a key of the request. */
  readonly isHashed: boolean;
  readonly retry: PoolRetry | undefined;
  /** It is asked whether requests are let in. */
  readonly isAsked: boolean;
}

/** HTTPRoutes have no word. */
export const HTTP_PROFILE = '';
/** GRPCRoutes: members get HTTP/2. */
export const GRPC_PROFILE = 'grpc';
/** Ingresses whose members speak https, and gRPC with TLS. */
export const TLS_PROFILE = 'tls';
export const GRPC_TLS_PROFILE = 'grpctls';
/** TCPRoutes and TLSRoutes. */
export const TCP_PROFILE = 'tcp';

/**
 * In front of the others: for members that get a certificate, for rules with session persistence or a key, for authorization
 * servers, and for rules that retry.
 */
const STICKY = 'sticky';
const HASHED = 'hashed';
const ASKED = 'asked';
const WORDS = /^(crt[0-9a-f]{16})?(sticky)?(hashed)?(asked)?(?:retry(\d+)((?:on\d+)*))?([a-z]*)$/;

export function withPersistence(profile: string): string {
  return `${STICKY}${profile}`;
}

/** Before withPersistence(). */
export function withHash(profile: string): string {
  return `${HASHED}${profile}`;
}

export function withRetry({ attempts, codes }: PoolRetry, profile: string): string {
  return `retry${attempts}${codes.map((code) => `on${code}`).join('')}${profile}`;
}

/** For an authorization server: its members get the same certificate and TLS. */
export function askedProfile(profile: string): string {
  const [, certificate = '', , , , , , words = ''] = WORDS.exec(profile) ?? [];
  return `${certificate}${ASKED}${words}`;
}

/** A question that a member does not answer, or with an error of its own, goes to another one: it changes nothing there. */
const QUESTIONS: PoolRetry = { attempts: 2, codes: [500, 502, 503, 504] };

/** For a pool whose members get a certificate, or TLS as an Ingress asks for it: the word is a mark of what PoolUses names. */
export function withCertificate(asked: string, profile: string): string {
  return `crt${createHash('sha256').update(asked).digest('hex').slice(0, 16)}${profile}`;
}

export function withAskedTls(asked: AskedTls | undefined, profile: string): string {
  return asked === undefined ? profile : withCertificate(JSON.stringify(asked), profile);
}

export function poolProfile(all: string): PoolProfile {
  const [, , sticky, hashed, asked, attempts, codes = '', words = ''] = WORDS.exec(all) ?? [];
  const own =
    attempts === undefined
      ? undefined
      : { attempts: Number(attempts), codes: codes.split('on').slice(1).map(Number) };
  return {
    isSticky: sticky !== undefined,
    isHashed: hashed !== undefined,
    isAsked: asked !== undefined,
    retry: asked === undefined ? own : QUESTIONS,
    mode: words === TCP_PROFILE ? 'tcp' : 'http',
    httpVersion: words === GRPC_PROFILE || words === GRPC_TLS_PROFILE ? '2' : '1.1',
    isTls: words === TLS_PROFILE || words === GRPC_TLS_PROFILE,
  };
}
