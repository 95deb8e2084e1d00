import { type Model, model } from './firmware.ts'

/**
 * The CGI scripts of a camera end the last field with LF LF; the server ends its own fields with CR LF.
 * https://github.com/vibe-d/vibe.d/pull/2362
 */
export const device: Model = model(import.meta, () => async (line) => {
  if ((await line.head()) !== undefined)
    line.end('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-type: text/plain\n\nok')
})
