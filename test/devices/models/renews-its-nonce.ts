import { createHash } from 'node:crypto'
import { type Head, type Model, model, response } from './firmware.ts'

/**
 * A server sends a new nonce with each response to Digest, and takes only the newest.
 * https://github.com/curl/curl/issues/2136
 */
const md5 = (text: string): string => createHash('md5').update(text).digest('hex')

function proves(head: Head, nonce: string): boolean {
  const given = head.field('Authorization', 'i') ?? ''
  const part = (name: string): string => new RegExp(`[ ,]${name}="?([^",]*)`).exec(given)?.[1] ?? ''
  const secret = md5('admin:device:secret')
  const request = md5(`${head.method}:${head.target}`)
  const expected = md5(`${secret}:${nonce}:${part('nc')}:${part('cnonce')}:auth:${request}`)
  return part('nonce') === nonce && part('response') === expected
}

export const device: Model = model(import.meta, () => {
  let count = 0
  return async (line) => {
    for (let head = await line.head(); head !== undefined; head = await line.head()) {
      const signedIn = proves(head, `n${count}`)
      count += 1
      const challenge = `Digest realm="device", qop="auth", nonce="n${count}"`
      const stale = head.field('Authorization', 'i') === undefined ? '' : ', stale=true'
      line.send(
        signedIn
          ? response('ok', `Authentication-Info: nextnonce="n${count}"\r\n`)
          : response('', `WWW-Authenticate: ${challenge}${stale}\r\n`, '401 Unauthorized'),
      )
    }
  }
})
