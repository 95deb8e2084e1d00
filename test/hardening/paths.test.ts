import { expect, it } from 'vitest'
import { expectError } from '../support/errors.ts'
import { BrokenTransfer } from '../support/message.ts'
import { responsesIn } from '../support/raw-responses.ts'
import { type ApiRequest, PASSWORD_GRANT } from '../support/sidecar.ts'
import { describeProtocols, describeTransports } from '../support/transports.ts'
import { get, sharedFront, startFront } from '../support/front.ts'

/** Paths that some parser reads as `/oauth/token`. */
const DISGUISES = String.raw`
  //oauth/token /oauth//token ///oauth///token /oauth/token/ /oauth/token// /oauth/token/. /./oauth/token /oauth/./token
  /x/../oauth/token /oauth/x/../token /oauth/token/x/.. /../oauth/token /%2e/oauth/token /oauth/%2e/token
  /x/%2e%2e/oauth/token /oauth/x/.%2e/token /x/%2E./oauth/token /%6fauth/token /%6Fauth/token /oauth/%74oken
  /oauth/toke%6e /%6f%61%75%74%68/%74%6f%6b%65%6e /oauth%2ftoken /oauth%2Ftoken /%2foauth/token %2foauth/token
  /oauth/token%2f /%256fauth/token /oauth/%2574oken /oauth%252ftoken /x/%252e%252e/oauth/token
  \oauth\token /oauth\token /\oauth/token /oauth/token\ /oauth%5ctoken /x\..\oauth/token
  /oauth/token;x /oauth/token; /oauth;x/token /oauth/token;jsessionid=1 /;/oauth/token /x/..;/oauth/token
  /oauth/token# /oauth/token#f /oauth/token%23 /oauth/token%3f /oauth/token& /oauth/token,
  /oauth/token%00 /oauth/token%00.js /oauth/token%20 /oauth/token+ /oauth/token%0a /oauth/token%0d%0a
  /OAuth/Token /OAUTH/TOKEN /oauth/Token /oauth/token. /oauth/token.json /oauth/token~ /oauth/token:
  /%c0%afoauth/token /oauth%c0%aftoken /oauth/%u0074oken /oauth/toke%ef%bd%8e /oauth/tok%65n%zz
  /api/../oauth/token /x?/../oauth/token /?/oauth/token /oauth /oauth/ /oauth/tokens /oauth/tok`
  .trim()
  .split(/\s+/)

/** Values of `:path` that HTTP/2 can carry and HTTP/1 cannot. */
const IMPOSSIBLE = [
  '/a#b',
  '/#',
  '/oauth/token#x',
  '/\xe9',
  '/oauth/token\xa0',
  '/\xff\xfe',
  '',
  'x',
  '*',
  'http://x/',
  '?x',
  '/a b',
  '/oauth/token ',
  '\t/',
  '/a\tb',
  '/a\x7fb',
]

describeProtocols('Paths', (transport) => {
  const front = sharedFront(transport)

  /** The response, or 400 where the client or the sidecar broke the stream instead. */
  async function ask(request: ApiRequest): Promise<{ status: number; text: string }> {
    return front.sidecar.request(request).catch((error: unknown) => {
      if (transport === 'h2' && !(error instanceof BrokenTransfer && error.partial))
        return { status: 400, text: '' }
      throw error
    })
  }

  it.each(DISGUISES)(
    'H24 %s is not the token endpoint: it is refused without a token and forwarded with one',
    async (path) => {
      const { device } = front.sidecar
      const fields = ['Content-Type', 'application/x-www-form-urlencoded']
      const before = device.requests.length
      const refused = await ask({ method: 'POST', path, fields, body: PASSWORD_GRANT })
      expect([400, 401]).toContain(refused.status)
      expect(device.requests).toHaveLength(before)
      const forwarded = await ask({ method: 'POST', path, fields, body: PASSWORD_GRANT, token: front.token })
      expect(forwarded.text).not.toContain('access_token')
      const arrived = device.requests.slice(before).map(({ target }) => target)
      expect([forwarded.status, arrived]).toEqual(forwarded.status === 200 ? [200, [path]] : [400, []])
      expect(forwarded.status, 'refused only if it is no valid path').toBe(
        /^\/[!"$-~]*$/.test(path) ? 200 : 400,
      )
    },
  )

  it('H26 OPTIONS * is answered by the sidecar itself', async () => {
    const before = front.sidecar.device.byteCount
    for (const token of [undefined, front.token]) {
      const response = await front.sidecar.request({ method: 'OPTIONS', path: '*', ...(token && { token }) })
      expectError(response, 400, 'invalid_request')
    }
    expect(front.sidecar.device.byteCount).toBe(before)
  })
})

describeTransports(
  'Paths in HTTP/2',
  (transport) => {
    const front = sharedFront(transport)

    it.each(IMPOSSIBLE)('H27 a :path of %j is refused, and no byte reaches the device', async (path) => {
      const before = front.sidecar.device.byteCount
      const status = await front.sidecar
        .request({ path, token: front.token })
        .then((response) => response.status)
        .catch(() => 400)
      expect(status).toBe(400)
      expect(front.sidecar.device.byteCount).toBe(before)
    })
  },
  ['h2'],
)

describeTransports(
  'Targets in HTTP/1',
  (transport) => {
    const front = sharedFront(transport)

    const at = (target: string): string => get('Connection: close').replace('/x', target)

    it.each([
      ['http://device/a?b', '/a?b'],
      ['HTTP://DEVICE/a', '/a'],
      ['https://device/a//b', '/a//b'],
      ['http://device', '/'],
      ['http://device?a=/b', '/?a=/b'],
      ['http://device/http://other/', '/http://other/'],
      ['http://device//other/', '//other/'],
      ['//other/a', '//other/a'],
    ])('H25 the target %s reaches the device as %s', async (target, path) => {
      expect((await front.responsesTo(at(target))).map(({ status }) => status)).toEqual([200])
      expect(front.sidecar.device.requests.at(-1)?.target).toBe(path)
      expect(
        front.sidecar.device.requests
          .at(-1)
          ?.values('Host')
          .map((host) => host.toLowerCase()),
      ).toEqual(['device'])
    })

    it.each([
      ...String.raw`http://other/ http://device:81/ http://device.evil/ http://u@device/ http://u:p@device/
        http://device@other/ http://device%00/ http://device\@other/ http:/// http:/device/ http:device http:// http://?
        http://# ftp://device/ file:///etc/passwd gopher://device/ ws://device/ javascript:1 device:80 device * ? # .
        http://device/#f http://device#f http://[::1/ x/y ../x \x /x# /x#f /x\y#`.split(/\s+/),
      ...['http://device/\xe9', 'http://device\xe9/', 'http://dev ice/', '/\xe9', '/\xff', '/x\x80'],
    ])('H25 the target %j: 400 and close, and no byte reaches the device', (target) =>
      front.expectRefused(get().replace('/x', target)),
    )

    // A proxy that decodes a path before it forwards it lets its client write whole requests (CRLF-powered desync).
    it.each(['strict', 'tolerant'])(
      'H95 an encoded line break reaches the device encoded (%s parser)',
      async (parser) => {
        const encoded = await startFront(transport, { upstream: { parser } })
        const target = '/x%0d%0aX-Evil:%20y%0d%0a%0d%0aGET%20/smuggled%20HTTP/1.1?a=%0aX-Evil:y&b=%0D%0A%00'
        expect((await encoded.responsesTo(at(target))).map(({ status }) => status)).toEqual([200])
        expect(encoded.sidecar.device.requests.map((request) => request.target)).toEqual([target])
        expect(encoded.sidecar.device.requests[0]?.values('X-Evil')).toEqual([])
      },
    )

    it('H25 the absolute form of the token path is the token endpoint, and that of a look-alike is not', async () => {
      const post = (target: string): string =>
        at(target)
          .replace('GET', 'POST')
          .replace(
            '\r\n\r\n',
            `\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${PASSWORD_GRANT.length}\r\n\r\n${PASSWORD_GRANT}`,
          )
      const tokens = await (await front.send(post('http://device/oauth/token'))).closed
      expect(responsesIn(tokens)[0]?.json()).toHaveProperty('access_token')
      const path = await (await front.send(post('http://device//oauth/token'))).closed
      expect(responsesIn(path)[0]?.text).toBe('from the device')
    })
  },
  ['http1'],
)
