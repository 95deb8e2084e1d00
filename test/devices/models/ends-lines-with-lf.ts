import { type Model, model } from './firmware.ts'

/**
 * A device ends the lines of its response with LF alone.
 * https://github.com/nodejs/node/issues/43798
 */
export const device: Model = model(import.meta, () => async (line) => {
  if ((await line.head()) !== undefined)
    line.end('HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 2\n\nok')
})
