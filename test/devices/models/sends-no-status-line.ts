import { type Model, model } from './firmware.ts'

/**
 * A status page is sent without a status line: HTTP/0.9.
 * https://github.com/danielkucera/esp-arduino-ebus/pull/39
 */
export const device: Model = model(import.meta, () => async (line) => {
  if ((await line.head()) !== undefined) line.end('uptime: 5 days\n')
})
