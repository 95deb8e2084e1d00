import { chmodSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { temporaryDirectory } from '../support/certificate.ts'

export const HUGE: number = 100 << 20

/** Bytes that would change if any code handled them as text. */
export const binary: Buffer = Buffer.from(
  Array.from({ length: 300_000 }, (_, i) => (i * 7919 + (i >> 8)) & 0xff),
)

const files: Readonly<Record<string, string | Buffer>> = {
  'hello.txt': 'hello from the device\n',
  'empty.txt': '',
  'with space.txt': 'a path with a space\n',
  'binary.bin': binary,
  'page.html': `<!doctype html>${'<p>compress me</p>'.repeat(2000)}`,
  'packed.txt.gz': gzipSync('packed beforehand\n'),
  'dir/index.html': '<title>a directory</title>',
  'digest.php': `<?php header('Content-Type: text/plain'); echo hash('sha256', file_get_contents('php://input')), "  -\n";`,
  'digest.yaws': `<erl>
out(Arg) ->
  Body = case Arg#arg.clidata of undefined -> <<>>; Data -> Data end,
  Sum = [io_lib:format("~2.16.0b", [Byte]) || <<Byte>> <= crypto:hash(sha256, Body)],
  {content, "text/plain", [Sum, "  -\\n"]}.
</erl>
`,
}

const LONG = 'l'.repeat(20_000)

/** CGI programs like those of firmware. */
const programs: Readonly<Record<string, string>> = {
  echo: `printf 'Content-Type: application/octet-stream\\r\\nX-Method: %s\\r\\nX-Query: %s\\r\\n\\r\\n' "$REQUEST_METHOD" "$QUERY_STRING"
[ -z "$CONTENT_LENGTH" ] || head -c "$CONTENT_LENGTH"`,
  cookies: `printf 'Content-Type: text/plain\\r\\nSet-Cookie: a=1; Path=/\\r\\nSet-Cookie: b=2; HttpOnly\\r\\n\\r\\n%s\\n' "$HTTP_COOKIE"`,
  created: `printf 'Status: 201 Created\\r\\nContent-Type: text/plain\\r\\n\\r\\nmade\\n'`,
  nothing: `printf 'Status: 204 No Content\\r\\n\\r\\n'`,
  moved: `printf 'Status: 302 Found\\r\\nLocation: http://%s:%s/hello.txt\\r\\n\\r\\n' 127.0.0.1 "$SERVER_PORT"`,
  long: `printf 'Content-Type: text/plain\\r\\nX-Long: ${LONG}\\r\\n\\r\\nlong\\n'`,
  slow: `printf 'Content-Type: text/plain\\r\\n\\r\\nfirst\\n'; sleep 0.1; printf 'second\\n'; sleep 0.1; printf 'third\\n'`,
  sized: `printf 'Content-Type: text/plain\\r\\nContent-Length: 6\\r\\n\\r\\nsized\\n'`,
  digest: `printf 'Content-Type: text/plain\\r\\n\\r\\n'; head -c "$CONTENT_LENGTH" | sha256sum`,
}

/** Makes a document root with files and CGI programs, readable by servers that drop root. */
export function makeSite(): string {
  const root = temporaryDirectory()
  chmodSync(root, 0o755)
  for (const folder of ['dir', 'cgi-bin']) mkdirSync(join(root, folder), { mode: 0o755 })
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(root, name), content, { mode: 0o644 })
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(root, 'cgi-bin', name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  }
  // A sparse file takes no disk space.
  writeFileSync(join(root, 'huge.bin'), '', { mode: 0o644 })
  truncateSync(join(root, 'huge.bin'), HUGE)
  return root
}
