# The program alone: no shell, no libraries, no root. make image builds bin/obstacle, statically linked, and then the image,
# so that no base image has to be fetched.
FROM scratch
COPY bin/obstacle /obstacle
USER 65532:65532
ENTRYPOINT ["/obstacle"]
