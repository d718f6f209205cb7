// Which names the REST API takes for ids, files and addresses: they become parts of paths and of command lines. Pure.

/** A UUID; the ids of Octavia's sample objects have other letters. */
const ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const FILE_NAME = /^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}\.pem$/;

export function isId(text: string): boolean {
  return ID.test(text);
}

export function isFileName(text: string): boolean {
  return FILE_NAME.test(text);
}
