import { type Model, model, response } from './firmware.ts'

/**
 * The web server of an ESP8266 core serves one client. Other connections are accepted and wait until the first has ended;
 * the server says `Connection: close` and gives a client 2 s to close.
 * https://github.com/esp8266/Arduino/pull/7414
 */
export const device: Model = model(import.meta, () => {
  let turn = Promise.resolve()
  return (line) => {
    turn = turn.then(async () => {
      const head = await line.head()
      if (head === undefined) return
      line.end(response('ok', 'Connection: close\r\n'))
      await Promise.race([line.body(1), new Promise((resolve) => setTimeout(resolve, 2000))])
    })
    return turn
  }
})
