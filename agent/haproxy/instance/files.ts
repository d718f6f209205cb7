// What one HAProxy, a master and its workers, is started with and reached by, whatever text it boots.

export interface InstanceFiles {
  /** The text that it boots from: names the instance among all processes. */
  readonly config: string;
  /** Further words of its command line, such as a second file. */
  readonly more?: readonly string[];
  /** The `stats socket` of level admin, which a text of this instance has. */
  readonly adminSocket: string;
  readonly masterSocket: string;
  readonly pidFile: string;
  /** Its standard error. */
  readonly log: string;
}
