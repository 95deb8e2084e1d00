import { shellWord } from '../../system/named-file.ts'

export interface WalkthroughSettings {
  /** The URL of the sidecar for clients: `https://localhost:8443`. */
  readonly publicUrl: string
  readonly adminUrl: string
  readonly password: string
  readonly certificate: string
  readonly configFile: string
  /** The words that start this program again. */
  readonly program: readonly string[]
  /** The path of the Node.js that runs the demo; no other may be installed. Undefined in the single executable. */
  readonly node: string | undefined
}

/**
 * Without Node.js: the handshake with the key of RFC 6455 §1.3, a text frame with the command, and a close frame, each masked with four
 * zero bytes. printf is part of the shell, so the token is on no command line.
 */
const RAW_WEBSOCKET = String.raw`{ printf 'GET /api/console HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n' "$ACCESS"
  printf 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
  sleep 1; printf '\201\205\0\0\0\0ports'; sleep 1; printf '\210\200\0\0\0\0'; sleep 1
} | openssl s_client -quiet -verify_quiet -servername localhost -CAfile "$CA" -connect "${'$'}{POSTERN#https://}"; echo`

export interface Step {
  readonly title: string
  readonly command: string
}

/**
 * The commands to copy. They work from top to bottom in any POSIX shell with curl. The flood is last, because after it the client
 * has to wait for the next window.
 */
export function walkthrough(around: WalkthroughSettings): readonly Step[] {
  const certificate = shellWord(around.certificate)
  const script =
    'const s = new WebSocket(process.argv[1], { headers: { authorization: "Bearer " + process.argv[2] } });' +
    ' s.onopen = () => s.send("ports"); s.onmessage = e => { console.log(e.data); s.close() };' +
    ' s.onerror = e => console.error(e.message)'
  return [
    {
      title: 'Set the URL of the sidecar and its certificate',
      command: `POSTERN=${around.publicUrl} CA=${certificate}`,
    },
    {
      title: 'Get tokens for the password',
      command: [
        `TOKENS=$(curl -sS --cacert "$CA" -d grant_type=password --data-urlencode password=${around.password} "$POSTERN/oauth/token")`,
        'echo "$TOKENS"',
        `ACCESS=$(printf %s "$TOKENS" | sed 's/.*"access_token": *"\\([^"]*\\)".*/\\1/')`,
        `REFRESH=$(printf %s "$TOKENS" | sed 's/.*"refresh_token": *"\\([^"]*\\)".*/\\1/')`,
        'api() { curl -sS --cacert "$CA" -H "Authorization: Bearer $ACCESS" "$@"; }',
      ].join('\n'),
    },
    { title: 'Send a request to the device', command: 'api -i "$POSTERN/api/system"' },
    {
      title: 'Switch an outlet off, and list the outlets',
      command: 'api -X PUT -d \'{"enabled":false}\' "$POSTERN/api/ports/1"\napi "$POSTERN/api/ports"',
    },
    { title: 'Without a token: 401', command: 'curl -sS -i --cacert "$CA" "$POSTERN/api/system"; echo' },
    {
      title: 'Upload a firmware, 8 MB, streamed',
      command: 'head -c 8000000 /dev/urandom | api -X POST -T - "$POSTERN/api/firmware"',
    },
    { title: 'Three server-sent events', command: 'api -N "$POSTERN/api/events?count=3"' },
    {
      title: 'A redirect to the device itself: the sidecar replaces the address with its own',
      command: 'api -i "$POSTERN/login"',
    },
    around.node === undefined
      ? { title: 'Send a command over a WebSocket, as raw frames', command: RAW_WEBSOCKET }
      : {
          title: 'Send a command over a WebSocket',
          command: `NODE_EXTRA_CA_CERTS="$CA" ${shellWord(around.node)} -e '${script}' "$POSTERN/api/console" "$ACCESS"`,
        },
    {
      title: 'Refresh: a new access token for the refresh token',
      command:
        'curl -sS --cacert "$CA" -d grant_type=refresh_token -d "refresh_token=$REFRESH" "$POSTERN/oauth/token"; echo',
    },
    {
      title: 'Exceed the limit of 60 requests a minute: 200s, then 429s',
      command: `api -o /dev/null -w '%{http_code}\\n' "$POSTERN/api/ports?[1-70]" | sort | uniq -c`,
    },
    {
      title: 'Show the metrics',
      command: `curl -sS ${around.adminUrl}/metrics | grep -E '^postern_(requests|rate_limited|auth_failures)_total'`,
    },
    {
      title: 'Ask why a request was refused: its id is in every refusal',
      command: [
        `ID=$(api -D - -o /dev/null "$POSTERN/api/ports" | sed -n 's/^[Xx]-[Rr]equest-[Ii]d: *\\([0-9a-f]*\\).*/\\1/p')`,
        `${around.program.map(shellWord).join(' ')} explain --config ${shellWord(around.configFile)} "$ID"`,
      ].join('\n'),
    },
  ]
}

export function renderWalkthrough(steps: readonly Step[]): string {
  return steps.map((step) => `# ${step.title}\n${step.command}\n`).join('\n')
}
