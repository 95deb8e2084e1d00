import { type Model, model } from './firmware.ts'

/**
 * A touch panel sends `Content-Length` twice with static files, with the same value.
 * https://github.com/HASwitchPlate/openHASP/issues/834
 */
export const device: Model = model(import.meta, () => async (line) => {
  if ((await line.head()) !== undefined)
    line.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/css\r\nContent-Length: 2\r\n\r\nok')
})
