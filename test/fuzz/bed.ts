import { TROUBLES } from '../../src/record/troubles.ts'
import { leftBehind } from '../process/at-rest.ts'
import { stopGrace } from '../process/other-bounds.ts'
import { prepareSite, type Served } from '../process/serve.ts'
import { figuresOf } from '../support/processes.ts'
import { ACCESS, REFRESH, type Setting } from './case.ts'

/** A sidecar under test in a separate process. */
export interface Bed {
  readonly setting: Setting
  readonly served: Served
  readonly token: string
  /** The bytes of a text, with live tokens in place of the placeholders. */
  bytesOf(text: string): Buffer
  /** A new loopback address each time, which identifies the client at the device. */
  nextClient(): string
  /** New faults: the process has exited, or its log has errors. Each is returned once. */
  newFaults(): string[]
  /** The log lines about the requests of a client. */
  loggedOf(client: string): string
  /** The faults of a valid request. */
  control(): Promise<string[]>
  /** Connections, exchanges and sockets that remain after every client has left. */
  leftBehind(): Promise<string[]>
}

/** Short, so that open connections close soon, and long enough for a busy machine. */
const DEADLINES = { idle_timeout: '5s' }

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
    },
  })
  const served = await site.serve({ bounds: stopGrace(1_000) })
  let exit = ''
  void served.exit.then(({ code, signal }) => {
    exit = `the process exited with ${code ?? signal}`
  })
  const { access_token, refresh_token } = await served.grant()
  if (access_token.length !== ACCESS.length) throw new Error('the placeholders are not as long as tokens')
  let readLog = 0
  let reportedExit = ''
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
      const faults = lines
        .filter(({ level, msg }) => level >= 50 && msg !== TROUBLES.PosternDeviceDown.line)
        .map((line) => `logged: ${JSON.stringify(line)}`)
      if (exit !== reportedExit) faults.push(exit)
      reportedExit = exit
      return faults
    },
    loggedOf: (client) => JSON.stringify(served.log.filter((line) => line.client === client)),
    async control() {
      const path = `/control/${clients}`
      const response = await served.request({ path, token: access_token }).catch((error: Error) => error)
      if (response instanceof Error) return [`a valid request fails: ${response.message}`]
      return response.status === 200 && response.text === `GET ${path}`
        ? []
        : [`a valid request gets ${response.status} ${response.text}`]
    },
    leftBehind: async () => (exit === '' ? leftBehind(served, socketsAtRest) : []),
  }
}
