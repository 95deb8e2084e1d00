import { type Model, model } from './firmware.ts'

/**
 * A gateway sends a status line that ends with the status.
 * https://github.com/Feller-AG/wiser-api/issues/50
 */
export const device: Model = model(import.meta, () => async (line) => {
  if ((await line.head()) !== undefined) line.end('HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok')
})
