import { type Model, model } from './firmware.ts'

/**
 * A service announces a longer body than it sends, and closes. What is missing cannot be told from what was cut.
 * https://github.com/ledgetech/lua-resty-http/issues/215
 */
export const device: Model = model(import.meta, () => async (line) => {
  if ((await line.head()) !== undefined)
    line.end('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 25\r\n\r\nok')
})
