import { expect, it } from 'vitest'
import { nextRequest, startScripted } from '../support/scripted.ts'
import { runCheck } from './run-check.ts'

const MALFORMED = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie : sid=4711s3cret\r\n\r\nhi'
const FOUND = 'answered 200 with malformed HTTP: a blank before a colon: "Set-Cookie : xxx=xxxxxxxxxx\\r\\n"'

/** A device whose start page is as it should be, and whose API is not. */
async function startBroken() {
  const requests: string[] = []
  const device = await startScripted(async (peer) => {
    for (;;) {
      const [, path = ''] = (await nextRequest(peer)).split(' ')
      requests.push(path)
      if (path === '/api/malformed') peer.end(MALFORMED)
      else if (path === '/api/cut') peer.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi')
      else if (path === '/api/none') peer.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n')
      else peer.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi')
    }
  })
  return { device, requests }
}

it('H277 check tries the pages that it is given, and says what is wrong with each', async () => {
  const { device, requests } = await startBroken()
  const paths = ['/api/good?x=1', '/api/malformed', '/api/cut', '/api/none']
  const { code, printed } = await runCheck(device.url, [], { pages: paths })
  const lines = printed.split('\n').filter((line) => / page \//.test(line))
  expect(lines).toEqual([
    'ok      page /api/good?x=1: answered 200',
    `WARNING page /api/malformed: ${FOUND}`,
    'FAILED  page /api/cut: --set: upstream.url: no usable answer (http_response_incomplete)',
    'WARNING page /api/none: answered 404',
  ])
  expect(code).toBe(1)
  expect(printed).toContain('set upstream.parser: tolerant')
  expect(printed).not.toContain('4711s3cret')
  for (const path of paths) expect(requests.filter((each) => each === path)).toHaveLength(1)
})

it('H277 check says that the page that it always tries is malformed', async () => {
  const { device } = await startBroken()
  const { printed } = await runCheck(device.url, ['upstream.health.path=/api/malformed'])
  expect(printed).toContain(`WARNING device: ${device.url} ${FOUND}\n`)
})

it.each(['api', '/a#b', '/ü', ''])('H277 check refuses %j, which is no path', async (page) => {
  const { device, requests } = await startBroken()
  await expect(runCheck(device.url, [], { pages: [page] })).rejects.toThrow(
    'PATH must be a path of one service',
  )
  expect(requests).toEqual([])
})
