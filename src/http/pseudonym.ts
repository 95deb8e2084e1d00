/** The name of this proxy in `Via` (RFC 9110 §7.6.3) and `Proxy-Status` (RFC 9209): it tells nobody where it runs. */
export const PSEUDONYM = 'postern'
