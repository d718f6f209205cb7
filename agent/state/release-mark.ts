// The operator's order that this host no longer serves certain namespaces, or anything: kept in a file, so that an agent that
// starts later does not serve them again. Owns the file, which also has what the provisioner has yet to release.

import { readFileSync } from 'node:fs';
import { messageOf } from '../base/errors.ts';
import { label } from '../base/name-forms.ts';
import { serial } from '../base/serial.ts';
import {
  boolean,
  listOf,
  object,
  oneOf,
  string,
  textRule,
  type Valid,
  wholeNumber,
} from '../base/validate.ts';
import { writeAtomically } from '../host/atomic-file.ts';

/** More would not fit into the report to the other hosts. */
export const MAX_NAMESPACES = 16;

/** Also of the report to other hosts. */
export const scopeSchema = object({
  /** The time of the order, milliseconds since the epoch: of two orders the later one counts; 0 if there was none. */
  at: wholeNumber(0, Number.MAX_SAFE_INTEGER),
  all: boolean(),
  /** Sorted. */
  namespaces: listOf(textRule((text) => label.check(text), label.not)).refine((list, refuse) => {
    if (list.length > MAX_NAMESPACES) refuse([], 'is too long');
  }),
});

/** What is released. */
export type ReleaseScope = Readonly<Valid<typeof scopeSchema>>;

const owedSchema = object({
  address: string(),
  public: string().nullish(),
  pool: string(),
  service: string(),
  ports: listOf(object({ protocol: oneOf('TCP', 'UDP', 'SCTP'), port: wholeNumber(1, 65_535) })),
});

/** An address whose release the provisioner has not confirmed yet. */
export type OwedRelease = Readonly<Valid<typeof owedSchema>>;

const fileSchema = object({
  scope: scopeSchema,
  owed: listOf(owedSchema).default([]),
  told: listOf(string()).default([]),
});

export const nothingReleased: ReleaseScope = { at: 0, all: false, namespaces: [] };

export class ReleaseMark {
  readonly #path: string;
  readonly #turns = serial();
  readonly #fault: string;
  #scope: ReleaseScope = nothingReleased;
  #owed: readonly OwedRelease[] = [];
  #told: readonly string[] = [];

  /** Reads the file at once. A file that cannot be read releases nothing: only an operator releases. */
  constructor(path: string) {
    this.#path = path;
    let fault = '';
    try {
      const { scope, owed, told } = fileSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
      this.#scope = scope;
      this.#owed = owed;
      this.#told = told;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') fault = messageOf(error);
    }
    this.#fault = fault;
  }

  /** Why the file could not be read, '' if it could or is missing. */
  get fault(): string {
    return this.#fault;
  }

  get scope(): ReleaseScope {
    return this.#scope;
  }

  get owed(): readonly OwedRelease[] {
    return this.#owed;
  }

  /** Claims whose release the provisioner has confirmed, and that this host still knows. */
  get told(): readonly string[] {
    return this.#told;
  }

  /** `namespace`: that of an owner; '-' or '' for one of the whole cluster. */
  readonly isReleased = (namespace: string): boolean => {
    const { all, namespaces } = this.#scope;
    return all || namespaces.includes(namespace);
  };

  /** Errors: FILE_WRITE; then nothing has changed. */
  set(scope: ReleaseScope, owed: readonly OwedRelease[], told: readonly string[]): Promise<void> {
    return this.#turns.run(() => this.#write(scope, owed, told));
  }

  /** The provisioner has released it; `told`: all claims of which that is known. Errors: as set(). */
  settle({ address, service }: OwedRelease, told: () => readonly string[]): Promise<void> {
    return this.#turns.run(() => {
      const owed = this.#owed.filter((each) => each.address !== address || each.service !== service);
      return this.#write(this.#scope, owed, told());
    });
  }

  async #write(scope: ReleaseScope, owed: readonly OwedRelease[], told: readonly string[]): Promise<void> {
    await writeAtomically(this.#path, [`${JSON.stringify({ scope, owed, told })}\n`]);
    this.#scope = scope;
    this.#owed = owed;
    this.#told = told;
  }
}

/** The scope with more in it. */
export function withReleased(before: ReleaseScope, more: Omit<ReleaseScope, 'at'>, at: number): ReleaseScope {
  const namespaces = [...new Set([...before.namespaces, ...more.namespaces])].sort();
  return { at: Math.max(at, before.at + 1), all: before.all || more.all, namespaces };
}

/** The scope without these namespaces; with `all` without anything. */
export function withoutReleased(
  before: ReleaseScope,
  less: Omit<ReleaseScope, 'at'>,
  at: number,
): ReleaseScope {
  const namespaces = less.all ? [] : before.namespaces.filter((each) => !less.namespaces.includes(each));
  return { at: Math.max(at, before.at + 1), all: before.all && !less.all, namespaces };
}
