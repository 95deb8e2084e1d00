import { type Model, model, response } from './firmware.ts'

/**
 * The sample server of the ESP32 announces nothing, and resets the connection when a second request comes on it.
 * https://github.com/espressif/arduino-esp32/issues/1956
 */
export const device: Model = model(import.meta, () => async (line) => {
  const first = await line.head()
  if (first === undefined) return
  const body = await line.body(Number(first.field('Content-Length', 'i') ?? 0))
  line.send(response(first.method === 'POST' ? body.toString() : 'ok'))
  await line.body(1)
  line.reset()
})
