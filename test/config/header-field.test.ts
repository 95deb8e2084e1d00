import { describe, expect, it } from 'vitest'
import { headerNameProblem, headerValueProblem } from '../../src/config/header-field.ts'

describe('a header for every forwarded request', () => {
  it.each(['X-Foo', 'Authorization', 'cookie', 'constructor', 'x.y', "!#$%&'*+-.^_`|~"])(
    'may have the name %s',
    (name) => {
      expect(headerNameProblem(name)).toBeUndefined()
    },
  )

  it.each([
    ['', 'must have a token as its name (RFC 9110 §5.6.2)'],
    ['X Foo', 'must have a token as its name (RFC 9110 §5.6.2)'],
    ['X-Foo:', 'must have a token as its name (RFC 9110 §5.6.2)'],
    [':path', 'must have a token as its name (RFC 9110 §5.6.2)'],
    ['Ä', 'must have a token as its name (RFC 9110 §5.6.2)'],
    ['X\r\nY', 'must have a token as its name (RFC 9110 §5.6.2)'],
    ['Host', 'must not be set here; set upstream.host instead'],
    ['Content-Length', "must not be set: the length of the body is the client's"],
    ['Expect', 'must not be set: the sidecar itself responds to Expect'],
    ['Connection', 'must not be set: it belongs to one connection (RFC 9110 §7.6.1)'],
    ['Proxy', 'must not be set: it belongs to one connection (RFC 9110 §7.6.1)'],
    ['HTTP2-Settings', 'must not be set: it belongs to one connection (RFC 9110 §7.6.1)'],
    ['TRANSFER-ENCODING', 'must not be set: it belongs to one connection (RFC 9110 §7.6.1)'],
    ['X-Forwarded-For', 'must not be set: the sidecar writes it itself'],
    ['Via', 'must not be set: the sidecar writes it itself'],
    ['X_Forwarded.For', 'must not be set: the sidecar writes it itself'],
    ['Content_Length', "must not be set: the length of the body is the client's"],
    ['Proxy~Authorization', 'must not be set: it belongs to one connection (RFC 9110 §7.6.1)'],
  ])('must not have the name %j', (name, problem) => {
    expect(headerNameProblem(name)).toBe(problem)
  })

  it.each(['', 'a', 'a b', 'a\tb', 'Basic dXNlcjpwdw==', 'é'])('may have the value %j', (value) => {
    expect(headerValueProblem(value)).toBeUndefined()
  })

  it.each([
    ['a\r\nX-Evil: b', 'must not contain control characters or line ends'],
    ['a\nb', 'must not contain control characters or line ends'],
    ['a\0', 'must not contain control characters or line ends'],
    ['a\x7f', 'must not contain control characters or line ends'],
    ['€', 'must not contain characters outside ISO 8859-1'],
    [' a', 'must not begin or end with a space'],
    ['a\t', 'must not begin or end with a space'],
  ])('must not have the value %j', (value, problem) => {
    expect(headerValueProblem(value)).toBe(problem)
  })
})
