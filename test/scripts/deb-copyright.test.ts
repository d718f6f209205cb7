import test from 'ava';
import { copyrightFile } from '../../scripts/deb-copyright.ts';

const MIT = '(The MIT License)\n\nCopyright (C) 2011-2015 by A. Author\n\nPermission is hereby granted\n';

function paragraphs(text: string): readonly Readonly<Record<string, string>>[] {
  return text.split(/\n\n/).map((block) => {
    const fields = block.matchAll(/^([A-Z][A-Za-z-]*): (.*(?:\n .*)*)/gm);
    return Object.fromEntries(Array.from(fields, ([, name = '', value = '']) => [name, value]));
  });
}

test('The copyright file has a paragraph for each package, with its holders and licence', (t) => {
  const [head, own, , mit, apache, last] = paragraphs(
    copyrightFile([
      { name: 'js-yaml', version: '5.5.0', licence: 'MIT', text: MIT },
      {
        name: '@kubernetes/client-node',
        version: '2.0.1',
        licence: 'Apache-2.0',
        text: 'Apache License\nVersion 2.0',
      },
    ]),
  );
  t.regex(
    head?.Format ?? '',
    /^https:\/\/www\.debian\.org\/doc\/packaging-manuals\/copyright-format\/1\.0\/$/,
  );
  t.is(own?.Files, '*');
  t.deepEqual(mit, {
    Files: 'usr/lib/headgate/node_modules/js-yaml/*',
    Copyright: '(C) 2011-2015 by A. Author',
    License:
      'MIT\n (The MIT License)\n .\n Copyright (C) 2011-2015 by A. Author\n .\n Permission is hereby granted',
    Comment: 'js-yaml 5.5.0',
  });
  t.is(apache?.License, 'Apache-2.0');
  t.is(apache?.Copyright, 'the authors of @kubernetes/client-node');
  t.regex(last?.License ?? '', /common-licenses/);
});
