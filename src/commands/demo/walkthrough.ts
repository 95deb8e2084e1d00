import { shellWord } from '../../system/text.ts'
import type { ProgramIo } from '../command.ts'

/** The values in the commands. Without `node` there is no command for WebSockets, because it needs Node.js. */
export interface WalkthroughSettings extends Pick<ProgramIo, 'node' | 'program'> {
  /** The URL of the sidecar for clients: `https://localhost:8443`. */
  readonly publicUrl: string
  readonly adminUrl: string
  readonly password: string
  readonly certificate: string
  readonly configFile: string
}

/**
 * The commands to copy. They work from top to bottom in any POSIX shell with curl. The flood is last, because after it the client
 * has to wait for the next window.
 */
export function walkthrough(around: WalkthroughSettings): string {
  const steps = stepsOf(around)
  return steps.map(([title, command]) => `# ${title}\n${command}\n`).join('\n')
}

type Step = readonly [title: string, command: string]

function stepsOf(around: WalkthroughSettings): readonly Step[] {
  return [
    [
      'Set the URL of the sidecar and its certificate',
      `POSTERN=${around.publicUrl} CA=${shellWord(around.certificate)}`,
    ],
    [
      'Get tokens for the password',
      `TOKENS=$(curl -sS --cacert "$CA" -d grant_type=password --data-urlencode password=${around.password} "$POSTERN/oauth/token")
echo "$TOKENS"
ACCESS=$(printf %s "$TOKENS" | sed 's/.*"access_token": *"\\([^"]*\\)".*/\\1/')
REFRESH=$(printf %s "$TOKENS" | sed 's/.*"refresh_token": *"\\([^"]*\\)".*/\\1/')
api() { curl -sS --cacert "$CA" -H "Authorization: Bearer $ACCESS" "$@"; }`,
    ],
    ['Send a request to the device', 'api -i "$POSTERN/api/system"'],
    [
      'Switch an outlet off, and list the outlets',
      'api -X PUT -d \'{"enabled":false}\' "$POSTERN/api/ports/1"\napi "$POSTERN/api/ports"',
    ],
    ['Without a token: 401', 'curl -sS -i --cacert "$CA" "$POSTERN/api/system"; echo'],
    [
      'Upload a firmware, 8 MB, streamed',
      'head -c 8000000 /dev/urandom | api -X POST -T - "$POSTERN/api/firmware"',
    ],
    ['Three server-sent events', 'api -N "$POSTERN/api/events?count=3"'],
    [
      'A redirect to the device itself: the sidecar replaces the address with its own',
      'api -i "$POSTERN/login"',
    ],
    ...(around.node === undefined ? [] : [overWebSocket(around.node)]),
    [
      'Refresh: a new access token for the refresh token',
      'curl -sS --cacert "$CA" -d grant_type=refresh_token -d "refresh_token=$REFRESH" "$POSTERN/oauth/token"; echo',
    ],
    [
      'Exceed the limit of 60 requests a minute: 200s, then 429s',
      `api -o /dev/null -w '%{http_code}\\n' "$POSTERN/api/ports?[1-70]" | sort | uniq -c`,
    ],
    [
      'Show the metrics',
      `curl -sS ${around.adminUrl}/metrics | grep -E '^postern_(requests|rate_limited|auth_failures)_total'`,
    ],
    [
      'Ask why a request was refused: its id is in every refusal',
      `ID=$(api -D - -o /dev/null "$POSTERN/api/ports" | sed -n 's/^[Xx]-[Rr]equest-[Ii]d: *\\([0-9a-f]*\\).*/\\1/p')
${around.program.map(shellWord).join(' ')} explain --config ${shellWord(around.configFile)} "$ID"`,
    ],
  ]
}

function overWebSocket(node: string): Step {
  const script =
    'const s = new WebSocket(process.argv[1], { headers: { authorization: "Bearer " + process.argv[2] } });' +
    ' s.onopen = () => s.send("ports"); s.onmessage = e => { console.log(e.data); s.close() };' +
    ' s.onerror = e => console.error(e.message)'
  const run = `${shellWord(node)} -e '${script}' "$POSTERN/api/console" "$ACCESS"`
  return ['Send a command over a WebSocket', `NODE_EXTRA_CA_CERTS="$CA" ${run}`]
}
