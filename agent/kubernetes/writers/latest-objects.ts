// The newest version of each object that this agent knows: its own write or read, until the watch shows another version
// than it did then.

export class LatestObjects<T extends { readonly resourceVersion: string }> {
  /** The object as the watch shows it. */
  readonly #shown: (key: string) => T | undefined;
  /** Key → what this agent wrote or read (undefined: there was none), and the version that the watch showed then. */
  readonly #own = new Map<
    string,
    { readonly object: T | undefined; readonly shownVersion: string | undefined }
  >();

  constructor(shown: (key: string) => T | undefined) {
    this.#shown = shown;
  }

  get(key: string): T | undefined {
    const shown = this.#shown(key);
    const own = this.#own.get(key);
    if (own !== undefined && shown?.resourceVersion === own.shownVersion) return own.object;
    this.#own.delete(key);
    return shown;
  }

  /** The version that the watch shows: to be read before a request, for `set()` after it. */
  shownVersion(key: string): string | undefined {
    return this.#shown(key)?.resourceVersion;
  }

  set(key: string, object: T | undefined, shownVersion: string | undefined): void {
    this.#own.set(key, { object, shownVersion });
  }

  /** From now on the object is what the watch shows. */
  delete(key: string): void {
    this.#own.delete(key);
  }

  clear(): void {
    this.#own.clear();
  }
}
