// The numbers of all messages (RFC 4250 section 4.1). Numbers 30 to 49 mean something else in each key
// exchange method, 60 to 79 in each authentication method.

export const Message = {
  disconnect: 1,
  ignore: 2,
  unimplemented: 3,
  debug: 4,
  serviceRequest: 5,
  serviceAccept: 6,
  extInfo: 7, // RFC 8308
  kexInit: 20,
  newKeys: 21,

  // RFC 4253 section 8, RFC 5656 section 4
  kexStart: 30,
  kexReply: 31,
  // RFC 4419 section 5
  gexGroup: 31,
  gexInit: 32,
  gexReply: 33,
  gexRequest: 34,

  // RFC 4252 section 6
  authRequest: 50,
  authFailure: 51,
  authSuccess: 52,
  authBanner: 53,
  authKeyOk: 60,
  authPasswordChange: 60,
  // RFC 4256 section 5
  authInfoRequest: 60,
  authInfoResponse: 61,

  // RFC 4254 section 9
  globalRequest: 80,
  requestSuccess: 81,
  requestFailure: 82,
  channelOpen: 90,
  channelOpenConfirmation: 91,
  channelOpenFailure: 92,
  channelWindowAdjust: 93,
  channelData: 94,
  channelExtendedData: 95,
  channelEof: 96,
  channelClose: 97,
  channelRequest: 98,
  channelSuccess: 99,
  channelFailure: 100,

  // OpenSSH's PROTOCOL file, section 1.9
  ping: 192,
  pong: 193,
} as const

/** RFC 4253 section 12: algorithm negotiation and the exchange itself. */
export function isKexMessage(type: number): boolean {
  return type >= 20 && type < 50
}
