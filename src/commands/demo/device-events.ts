import type { IncomingMessage, ServerResponse } from 'node:http'

export interface EventStream {
  /** Milliseconds between events; the first one comes at once. */
  readonly interval: number
  /** How many events to send before the stream ends; `Infinity` or `NaN` for no end. */
  readonly count: number
  readonly makeEvent: () => unknown
}

/** Sends server-sent events until `count` is reached or the client leaves. */
export function streamEvents(req: IncomingMessage, res: ServerResponse, stream: EventStream): void {
  res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' })
  if (req.method === 'HEAD') {
    res.end()
    return
  }
  let sent = 0
  const sendEvent = (): void => {
    sent += 1
    res.write(`id: ${sent}\nevent: power\ndata: ${JSON.stringify(stream.makeEvent())}\n\n`)
    if (sent < stream.count || Number.isNaN(stream.count)) return
    clearInterval(timer)
    res.end()
  }
  const timer = setInterval(sendEvent, stream.interval)
  res.once('close', () => clearInterval(timer))
  sendEvent()
}
