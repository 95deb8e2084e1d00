import { createServer, type Server, type Socket } from 'node:net'
import process from 'node:process'
import type { Link } from './model.ts'
import { isModel, MODELS } from './models.ts'

/**
 * `node bench/models/device.ts MODEL PORT CONTROL_PORT [TIME]`: plays a model of `models.ts` on PORT. TIME: what a request takes that is
 * alone (ms). A connection to CONTROL_PORT gets the `Counts` so far, as JSON. Each response has the number of its request.
 */
const [, , name = '', port, control, time] = process.argv
if (!isModel(name)) throw new Error(`MODEL: must be one of ${Object.keys(MODELS).join(', ')}`)

/** What the device has seen. */
export interface Counts {
  readonly requests: number
  readonly answered: number
  readonly connections: number
  readonly crashes: number
  /** The most requests at once. */
  readonly most: number
}

const usual = time === undefined ? MODELS[name].time : Number(time)
const model = MODELS[name].build(
  { now: () => performance.now(), after: (wait, run) => void setTimeout(run, wait) },
  () => usual,
)
const counts = { requests: 0, answered: 0, connections: 0, most: 0 }
let busy = 0
const server: Server = createServer({ noDelay: true }, serve)
/** While the model refuses, the kernel does. */
function listenOrRefuse(): void {
  if (model.refuses === !server.listening) return
  if (model.refuses) server.close()
  else server.listen({ port: Number(port), host: '127.0.0.1', backlog: 1024 })
}
listenOrRefuse()
setInterval(listenOrRefuse, 10)
createServer((socket) => {
  socket.on('error', () => {}).end(JSON.stringify({ ...counts, crashes: model.crashes }))
}).listen({ port: Number(control), host: '127.0.0.1' })

function serve(socket: Socket): void {
  counts.connections += 1
  let read = ''
  /** The request that is being served. */
  let current: string | undefined
  const finish = (): void => {
    if (current !== undefined) busy -= 1
    current = undefined
  }
  const link: Link = {
    answer() {
      if (current === undefined || socket.destroyed) return
      const body = JSON.stringify({ request: counts.answered })
      const bodiless = current.startsWith('HEAD ')
      const close = /\r\nconnection: *close\r\n/i.test(current)
      const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`
      finish()
      counts.answered += 1
      socket.write(`${head}${close ? 'Connection: close\r\n' : ''}\r\n${bodiless ? '' : body}`)
      if (close) socket.end()
      else next()
    },
    reset: () => void socket.resetAndDestroy(),
  }
  function next(): void {
    const end = read.indexOf('\r\n\r\n')
    if (current !== undefined || end < 0) return
    const head = read.slice(0, end + 2)
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
    if (read.length < end + 4 + length) return
    read = read.slice(end + 4 + length)
    current = head
    busy += 1
    counts.requests += 1
    counts.most = Math.max(counts.most, busy)
    model.request(link, /^\S+ ([^ ?]*)/.exec(head)?.[1] ?? '')
  }
  socket.setEncoding('latin1')
  socket.on('data', (text: string) => {
    read += text
    next()
  })
  socket.on('end', () => socket.end())
  socket.on('error', () => {})
  socket.on('close', () => {
    finish()
    model.closed(link)
    listenOrRefuse()
  })
  model.connect(link)
  listenOrRefuse()
}
