import { createServer, type ServerResponse } from 'node:http'
import process from 'node:process'
import { type Dispatcher, Pool } from 'undici'

const [, , port, devicePort] = process.argv
const device = new Pool(`http://127.0.0.1:${devicePort}`, { connections: 256, pipelining: 1 })

/** Forwards only requests without a body: the load sends no others. */
createServer((req, res) => {
  const fields = req.rawHeaders.filter((_, i) => req.rawHeaders[i - (i % 2)]?.toLowerCase() !== 'connection')
  device.dispatch(
    { path: req.url ?? '/', method: req.method as Dispatcher.HttpMethod, headers: fields },
    relayTo(res),
  )
}).listen(Number(port), '127.0.0.1')

function relayTo(res: ServerResponse): Dispatcher.DispatchHandler {
  return {
    // undici recognizes the current handler interface by this method.
    onRequestStart() {},
    onResponseStart(controller, status) {
      // For a dispatch the raw headers of undici are buffers.
      const raw = (controller.rawHeaders as Buffer[]).map((bytes) => bytes.toString('latin1'))
      res.writeHead(
        status,
        raw.filter((_, i) => raw[i - (i % 2)]?.toLowerCase() !== 'connection'),
      )
    },
    onResponseData: (_controller, chunk) => res.write(chunk),
    onResponseEnd: () => res.end(),
    onResponseError: () => res.destroy(),
  }
}
