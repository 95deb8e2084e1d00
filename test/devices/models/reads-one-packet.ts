import { once } from 'node:events'
import { type Model, model, response } from './firmware.ts'

/**
 * An access point reads a request with one call, so head and body have to come in one packet each.
 * https://github.com/monitoring-plugins/monitoring-plugins/issues/156
 */
export const device: Model = model(import.meta, () => async (line) => {
  const [packet] = (await once(line.socket, 'data')) as [Buffer]
  line.end(
    packet.includes('\r\n\r\n')
      ? response('ok', 'Connection: close\r\n')
      : response('', '', '400 Bad Request'),
  )
})
