// The forms of names in Kubernetes (k8s.io/apimachinery/pkg/util/validation). Pure.

export interface NameForm {
  check(text: string): boolean;
  /** Completes `"Web" is not a DNS label ...`. */
  readonly not: string;
}

const LABEL = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const WORD = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

/** RFC 1123; names of namespaces, Services and ports. */
export const label: NameForm = {
  check: (text) => text.length <= 63 && LABEL.test(text),
  not: 'is not a DNS label (a-z, 0-9 and "-", at most 63 characters)',
};

/** Names of BGP peers: a prefix and the name together are a symbol of BIRD. */
export const peerName: NameForm = {
  check: (text) => /^[a-z][a-z0-9-]{0,29}$/.test(text),
  not: 'is not a name of at most 30 lower-case letters, digits and dashes',
};

/** RFC 1123; names of most other objects. */
export const subdomain: NameForm = {
  check: (text) => text.length <= 253 && SUBDOMAIN.test(text),
  not: 'is not a DNS name (a-z, 0-9, "-" and ".", at most 253 characters)',
};

/** `name` or `example.org/name`; keys of labels, classes, application protocols. */
export const qualifiedName: NameForm = {
  check(text) {
    const slash = text.indexOf('/');
    if (slash >= 0 && !subdomain.check(text.slice(0, slash))) return false;
    const name = text.slice(slash + 1);
    return name.length <= 63 && WORD.test(name);
  },
  not: 'is not a qualified name (such as "name" or "example.org/name")',
};

/** Keys of annotations: upper case counts as lower case (k8s.io/apimachinery/pkg/api/validation, ValidateAnnotations). */
export const annotationName: NameForm = {
  check: (text) => qualifiedName.check(text.replaceAll(/[A-Z]+/g, (upper) => upper.toLowerCase())),
  not: qualifiedName.not,
};

export const labelValue: NameForm = {
  check: (text) => text === '' || (text.length <= 63 && WORD.test(text)),
  not: 'is not a label value (A-Z, a-z, 0-9, "-", "_" and ".", at most 63 characters)',
};
