// Authenticates advertisements as far as both hosts can: reads the operator's key, takes what the peer reports of its own
// keepalived, and gives the next state, which counts once keepalived has it. Owns nothing but the last good key.

import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../host/log.ts';
import { type AdvertKey, readAdvertKey } from './advert-key.ts';
import { type AuthState, nextAuth, noAuth, type PeerAuth, whyNotEnforced } from './auth-steps.ts';
import { authIn } from './auth-text.ts';

export interface AuthenticationOptions {
  /** The file with the key, '' for none: the current setting. */
  readonly path: () => string;
  /** The keepalived that runs, and the program that would be started, can authenticate. */
  readonly canUse: () => boolean;
  readonly version: () => string;
  readonly log: Log;
}

export interface AuthStatus {
  readonly level: AuthState['level'];
  /** The name of the key that this host signs with, '' for none. */
  readonly key: string;
  /** Why it is not enforced with the key of the settings; '' if it is, or if there is none. */
  readonly why: string;
}

/** From this version on `auth_hmac` has every mode that the steps need. */
export const AUTH_VERSION = '2.4.2';

export class Authentication {
  readonly #options: AuthenticationOptions;
  readonly #onChanged: (() => void)[] = [];
  /** undefined before keepalived.conf is read, or if there is none. */
  #running: AuthState | undefined;
  #key: AdvertKey | undefined;
  #fault = '';
  #peer: PeerAuth | undefined;

  constructor(options: AuthenticationOptions) {
    this.#options = options;
  }

  /** The file of an earlier agent; undefined if there is none. */
  adopt(text: string | undefined): void {
    this.#running = text === undefined ? undefined : authIn(text);
  }

  /** Reads the key again; the last good one stays if that fails. */
  async readKey(): Promise<void> {
    const { path, log } = this.#options;
    const before = this.#fault;
    this.#fault = '';
    if (path() === '') this.#key = undefined;
    else
      await readAdvertKey(path()).then(
        (key) => {
          this.#key = key;
        },
        (error: unknown) => {
          this.#fault = messageOf(error);
        },
      );
    if (this.#fault !== '' && this.#fault !== before)
      log.error('Cannot read the key of advertisements', { error: this.#fault });
  }

  /** True if another state is due. */
  hear(peer: PeerAuth | undefined): boolean {
    this.#peer = peer;
    return this.isDue;
  }

  get isDue(): boolean {
    return JSON.stringify(this.next) !== JSON.stringify(this.#running ?? noAuth);
  }

  /** What keepalived gets next. */
  get next(): AuthState {
    const { canUse, version } = this.#options;
    // A keepalived that was replaced by an older one would refuse its file.
    if (version() !== '' && !canUse()) return noAuth;
    return nextAuth(this.#running, this.#usable, this.#peer);
  }

  /** keepalived has it now. */
  applied(state: AuthState): void {
    const { log } = this.#options;
    const before = this.#running;
    this.#running = state;
    if (JSON.stringify(before ?? noAuth) === JSON.stringify(state)) return;
    log.info('The authentication of advertisements has changed', {
      level: state.level,
      signsWith: state.active,
    });
    for (const callback of this.#onChanged) callback();
  }

  onChanged(callback: () => void): void {
    this.#onChanged.push(callback);
  }

  /** For the peer. */
  get report(): PeerAuth {
    const { level, keys, active } = this.#running ?? noAuth;
    const wants = this.#usable === undefined ? 'off' : 'enforce';
    return { level, wants, keys: keys.map(({ name }) => name), active };
  }

  status(): AuthStatus {
    const { path, canUse, version } = this.#options;
    const now = this.#running ?? noAuth;
    const isOld = path() !== '' && !canUse() && version() !== '';
    const old = `keepalived ${version()} cannot: ${AUTH_VERSION} or newer can`;
    const why = this.#fault || (isOld ? old : whyNotEnforced(now, this.#key, this.#peer));
    return { level: now.level, key: now.active, why };
  }

  get #usable(): AdvertKey | undefined {
    return this.#options.canUse() ? this.#key : undefined;
  }
}
