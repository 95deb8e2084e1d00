import { leftBehind } from '../process/at-rest.ts'
import { prepareSite, type Served } from '../process/serve.ts'
import { figuresOf } from '../support/process-figures.ts'
import { ACCESS, REFRESH, type Setting } from './case.ts'

/** A sidecar under test, as a process of its own. */
export interface Bed {
  readonly setting: Setting
  readonly served: Served
  readonly token: string
  /** The bytes of a text, with live tokens where it only marks their places. */
  bytesOf(text: string): Buffer
  /** Another address of this machine each time, so that whatever reaches the device tells whose it is. */
  nextClient(): string
  /** What must not be: the process has gone, or its log speaks of a bug. Each is told once. */
  newFaults(): string[]
  /** What the log says about a client's requests. */
  loggedOf(client: string): string
  /** Whether it still serves as it should. */
  control(): Promise<string[]>
  /** What is left behind once every client has gone: connections, exchanges, sockets. */
  leftBehind(): Promise<string[]>
}

/** Deadlines are short here, so that what stays open is soon closed, but not so short that a busy machine misses them. */
const DEADLINES = { header_timeout: '4s', body_timeout: '4s', idle_timeout: '5s' }

let clients = 0

export async function makeBed(setting: Setting, device: { readonly url: string }): Promise<Bed> {
  const site = await prepareSite({
    device,
    transport: setting.transport,
    config: {
      listen: { ...DEADLINES, max_connections: 5000 },
      upstream: { parser: setting.parser, response_timeout: '4s', idle_timeout: '4s' },
      oauth: { revocation_path: '/oauth/revoke' },
      limits: { max_keys: 1_000_000 },
      tokens: { store: 'memory' },
      shutdown_grace: '1s',
    },
  })
  const served = await site.serve()
  let ended = ''
  void served.exit.then(({ code, signal }) => {
    ended = `the process ended with ${code ?? signal}`
  })
  const { access_token, refresh_token } = await served.grant()
  if (access_token.length !== ACCESS.length) throw new Error('the stand-ins are not as long as tokens are')
  let readLog = 0
  let told = ''
  const socketsAtRest = figuresOf(served.pid).sockets

  return {
    setting,
    served,
    token: access_token,
    bytesOf: (text) =>
      Buffer.from(text.replaceAll(ACCESS, access_token).replaceAll(REFRESH, refresh_token), 'latin1'),
    nextClient() {
      clients += 1
      return `127.${1 + ((clients >> 16) & 0x7f)}.${(clients >> 8) & 0xff}.${clients & 0xff}`
    },
    newFaults() {
      const lines = served.log.slice(readLog)
      readLog = served.log.length
      const faults = lines.filter(({ level }) => level >= 50).map((line) => `logged: ${JSON.stringify(line)}`)
      if (ended !== told) faults.push(ended)
      told = ended
      return faults
    },
    loggedOf: (client) => JSON.stringify(served.log.filter((line) => line.client === client)),
    async control() {
      const path = `/control/${clients}`
      const answer = await served.request({ path, token: access_token }).catch((error: Error) => error)
      if (answer instanceof Error) return [`a good request fails: ${answer.message}`]
      return answer.status === 200 && answer.text === `GET ${path}`
        ? []
        : [`a good request gets ${answer.status} ${answer.text}`]
    },
    leftBehind: async () => (ended === '' ? leftBehind(served, socketsAtRest) : []),
  }
}
