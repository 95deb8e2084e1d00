import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../child.ts'
import { sourceProgram } from '../program.ts'
import { askForToken, startSidecar } from '../sidecar.ts'
import { keepAliveClient, login, WIDE } from './request-weight.ts'

/** A function of the source that a request ran, and how often. */
interface Ran {
  readonly file: string
  readonly name: string
  readonly calls: number
}

interface ScriptCoverage {
  readonly url: string
  readonly functions: readonly {
    readonly functionName: string
    readonly ranges: readonly { readonly count: number }[]
  }[]
}

/** A timer may run beside a request, so the try with the fewest calls counts. */
const TRIES = 5

const SOURCE = new URL('../../src/', import.meta.url).href

/**
 * What one warm request of each kind passes through: files, functions and calls of the source, which V8 counts in the running sidecar.
 * `list` gets each function.
 */
export async function weighHops(
  device: string,
  list: (kind: string, ran: readonly Ran[]) => void,
): Promise<Readonly<Record<string, number>>> {
  const port = await freePort()
  const sidecar = await startSidecar({
    device,
    tls: false,
    limits: WIDE,
    program: sourceProgram([`--inspect=127.0.0.1:${port}`]),
  })
  const token = await askForToken(sidecar.url)
  const ask = keepAliveClient(sidecar.url)
  const kinds: Readonly<Record<string, () => Promise<unknown>>> = {
    'GET, forwarded': () => ask('GET', { authorization: `Bearer ${token}` }),
    'GET, 401': () => ask('GET', { authorization: 'Bearer no' }),
    'POST /oauth/token': () => login(ask),
  }
  for (let i = 0; i < 5; i += 1) for (const once of Object.values(kinds)) await once()
  await pause(1_200) // what a start defers is over
  const inspector = await openInspector(port)
  const figures: Record<string, number> = {}
  for (const [kind, once] of Object.entries(kinds)) {
    const tries: Ran[][] = []
    for (let i = 0; i < TRIES; i += 1) tries.push(await ranDuring(inspector, once))
    const [ran = []] = tries.sort((a, b) => callsOf(a) - callsOf(b))
    list(kind, ran)
    figures[`${kind}: files`] = new Set(ran.map(({ file }) => file)).size
    figures[`${kind}: functions`] = ran.length
    figures[`${kind}: calls`] = callsOf(ran)
  }
  inspector.close()
  await sidecar.stop()
  return figures
}

async function ranDuring(inspector: Inspector, once: () => Promise<unknown>): Promise<Ran[]> {
  await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  await inspector.post('Profiler.takePreciseCoverage')
  await once()
  await pause(40) // its record
  const { result = [] } = await inspector.post('Profiler.takePreciseCoverage')
  await inspector.post('Profiler.stopPreciseCoverage')
  return ranIn(result)
}

function callsOf(ran: readonly Ran[]): number {
  return ran.reduce((sum, { calls }) => sum + calls, 0)
}

function ranIn(scripts: readonly ScriptCoverage[]): Ran[] {
  return scripts
    .filter(({ url }) => url.startsWith(SOURCE))
    .flatMap(({ url, functions }) =>
      functions.flatMap(({ functionName: name, ranges: [range] }) =>
        range !== undefined && range.count > 0 && name !== ''
          ? [{ file: fileURLToPath(url).slice(fileURLToPath(SOURCE).length), name, calls: range.count }]
          : [],
      ),
    )
}

interface Inspector {
  post(method: string, params?: object): Promise<{ readonly result?: readonly ScriptCoverage[] }>
  close(): void
}

async function openInspector(port: number): Promise<Inspector> {
  const targets = await fetch(`http://127.0.0.1:${port}/json`)
  const [target] = (await targets.json()) as readonly { readonly webSocketDebuggerUrl: string }[] // V8's inspector protocol
  const socket = new WebSocket(target?.webSocketDebuggerUrl ?? '')
  await once(socket, 'open')
  const waiting = new Map<number, (result: { readonly result?: readonly ScriptCoverage[] }) => void>()
  socket.addEventListener('message', ({ data }) => {
    const { id, result } = JSON.parse(String(data))
    waiting.get(id)?.(result)
    waiting.delete(id)
  })
  let last = 0
  const post: Inspector['post'] = (method, params = {}) =>
    new Promise((resolve) => {
      last += 1
      waiting.set(last, resolve)
      socket.send(JSON.stringify({ id: last, method, params }))
    })
  await post('Profiler.enable')
  return { post, close: () => socket.close() }
}
